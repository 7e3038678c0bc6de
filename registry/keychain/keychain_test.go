package keychain_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

const (
	kindConfig = "kubernetes.io/dockerconfigjson"
	kindLegacy = "kubernetes.io/dockercfg"
	password   = "hunter2-hunter2"
	wrong      = "hunter3-hunter3"
)

// secret is one Secret; a broken one cannot be looked up.
type secret struct {
	kind   string
	data   map[string][]byte
	broken error
}

// cluster is a small one.
type cluster struct {
	mu       sync.Mutex
	secrets  map[string]secret
	accounts map[string][]string
	asked    []string
}

func (c *cluster) Secret(_ context.Context, namespace, name string) (string, map[string][]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, namespace+"/"+name)
	found, ok := c.secrets[namespace+"/"+name]
	switch {
	case !ok:
		return "", nil, &image.Error{Kind: image.NotFound, Op: "get Secret", On: namespace + "/" + name}
	case found.broken != nil:
		return "", nil, found.broken
	}
	return found.kind, found.data, nil
}

func (c *cluster) PullSecrets(_ context.Context, namespace, account string) ([]string, error) {
	names, ok := c.accounts[namespace+"/"+account]
	if !ok {
		return nil, &image.Error{Kind: image.NotFound, Op: "get ServiceAccount", On: namespace + "/" + account}
	}
	if slices.Contains(names, "!") {
		return nil, errors.New("the API server is down")
	}
	return names, nil
}

// login is a Secret for entries "where": user:password.
func login(entries ...string) secret {
	return secret{kind: kindConfig, data: map[string][]byte{".dockerconfigjson": config(entries...)}}
}

func config(entries ...string) []byte {
	auths := map[string]map[string]string{}
	for _, e := range entries {
		where, credential, _ := strings.Cut(e, " ")
		auths[where] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(credential))}
	}
	out, err := json.Marshal(map[string]any{"auths": auths})
	if err != nil {
		panic(err)
	}
	return out
}

func start(t testing.TB, scheme registrytest.Scheme) *registrytest.Server {
	t.Helper()
	server := registrytest.Start(registrytest.Options{
		Auth: registrytest.Auth{Scheme: scheme, Username: "user", Password: password},
	})
	t.Cleanup(server.Close)
	server.PutImage("team/app", "v1", "content")
	return server
}

func newKeychain(t testing.TB, c *cluster, change func(*keychain.Config)) *keychain.Keychain {
	t.Helper()
	client, err := registry.New(registry.Config{}, registry.WithBackoff(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	config := keychain.Config{Registry: client, Secrets: c, Accounts: c}
	if change != nil {
		change(&config)
	}
	k, err := keychain.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// resolve opens and resolves team/app:v1 of the server.
func resolve(t testing.TB, k *keychain.Keychain, host string, request keychain.Request) (scope string, err error) {
	t.Helper()
	ref := image.MustParse(host + "/team/app:v1")
	client, scope, err := k.Open(t.Context(), request, ref.Repository())
	if err != nil {
		return scope, err
	}
	_, err = client.Resolve(t.Context(), ref)
	return scope, err
}

// fixed is a provider of one credential for one host.
type fixed struct {
	host string
	auth authn.AuthConfig
	err  error
}

func (f fixed) Resolve(target authn.Resource) (authn.Authenticator, error) {
	if f.err != nil {
		return nil, f.err
	}
	if target.RegistryStr() != f.host {
		return authn.Anonymous, nil
	}
	return authn.FromConfig(f.auth), nil
}

var pod = keychain.Request{Namespace: "team", ServiceAccount: "default", PullSecrets: []string{"pull"}}

// TestOrder has the right credential in one place and, in the refused twin, a
// wrong one in the place before it.
func TestOrder(t *testing.T) {
	right, bad := "user:"+password, "user:"+wrong
	full := keychain.Request{
		Namespace: "team", ServiceAccount: "robot", PullSecrets: []string{"pod"},
		PolicySecrets: []string{"policies/pull"}, PolicyProviders: []string{"amazon"},
	}
	places := []struct{ secret, provider, named string }{
		{secret: "team/pod", named: `imagePullSecret "pod"`},
		{secret: "team/account", named: `imagePullSecret "account" of the service account "robot"`},
		{secret: "policies/pull", named: "the policy's Secret policies/pull"},
		{secret: "quaymaster/pull", named: "the gateway's Secret quaymaster/pull"},
		{provider: "amazon", named: "the credential provider amazon"},
		{provider: "google", named: "the credential provider google"},
	}
	for _, scheme := range []registrytest.Scheme{registrytest.Basic, registrytest.Token} {
		server := start(t, scheme)
		build := func(first, second int) *keychain.Keychain {
			c := &cluster{secrets: map[string]secret{}, accounts: map[string][]string{"team/robot": {"account"}}}
			providers := map[string]registry.Source{}
			for i, p := range places {
				credential := ""
				switch i {
				case first:
					credential = bad
				case second:
					credential = right
				}
				if p.provider != "" {
					_, word, _ := strings.Cut(credential, ":")
					auth := authn.AuthConfig{Username: "user", Password: word}
					if credential == "" {
						auth = authn.AuthConfig{}
					}
					providers[p.provider] = registry.Source{Name: p.named, Keychain: fixed{host: server.Host(), auth: auth}}
				} else if credential != "" {
					c.secrets[p.secret] = login(server.Host() + " " + credential)
				}
			}
			return newKeychain(t, c, func(config *keychain.Config) {
				config.Gateway, config.Providers, config.Cloud = []string{"quaymaster/pull"}, providers, []string{"google"}
			})
		}
		for i := range places {
			if _, err := resolve(t, build(-1, i), server.Host(), full); err != nil {
				t.Errorf("%s, the credential of %s alone: %v", scheme, places[i].named, err)
			}
			if i+1 == len(places) {
				continue
			}
			_, err := resolve(t, build(i, i+1), server.Host(), full)
			if image.KindOf(err) != image.Refused || !strings.Contains(err.Error(), "the credential from "+places[i].named) {
				t.Errorf("%s, a wrong credential of %s goes first: %v", scheme, places[i].named, err)
			}
			if err != nil && strings.Contains(err.Error(), "hunter") {
				t.Errorf("the message holds a password: %v", err)
			}
		}
	}
}

// names are those of so many Secrets that are not there.
func names(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("s%d", i)
	}
	return list
}

// TestSources: no credential, one that is of no use, and one that could
// not be looked up are three things.
func TestSources(t *testing.T) {
	server := start(t, registrytest.Basic)
	right := login(server.Host() + " user:" + password)
	down := secret{broken: errors.New("the API server is down")}
	forbidden := secret{broken: &image.Error{Kind: image.Refused, Op: "get Secret", On: "team/pull"}}
	gone := "imagePullSecret \"pull\" does not exist"
	tests := []struct {
		reason  string
		pull    *secret
		gateway *secret
		account []string
		kind    image.Kind // "" means that it is resolved
		says    string
	}{
		{reason: "it is there", pull: &right},
		{reason: "it is not there", kind: image.Refused, says: gone},
		{reason: "it is not there, and the gateway has one", gateway: &right},
		{reason: "it is of another type", pull: &secret{kind: "Opaque", data: right.data}, kind: image.Refused, says: `is of type "Opaque"`},
		{reason: "it is of another type, and the gateway has one", pull: &secret{kind: "Opaque", data: right.data}, gateway: &right},
		{reason: "it lacks its key", pull: &secret{kind: kindConfig}, kind: image.Refused, says: "has no .dockerconfigjson"},
		{reason: "it has the key of the other type", pull: &secret{kind: kindLegacy, data: right.data}, kind: image.Refused, says: "has no .dockercfg"},
		{reason: "it is no JSON", pull: &secret{kind: kindConfig, data: map[string][]byte{".dockerconfigjson": []byte("{" + password)}}, kind: image.Refused, says: "no readable docker configuration"},
		{reason: "it is for another host", pull: new(login("other.example user:" + password)), kind: image.Refused, says: "anonymously"},
		{reason: "its password is wrong", pull: new(login(server.Host() + " user:" + wrong)), kind: image.Refused, says: `imagePullSecret "pull"`},
		{reason: "it could not be looked up", pull: &down, kind: image.Unavailable, says: `imagePullSecret "pull" could not be looked up`},
		{reason: "it could not be looked up, and the gateway has one", pull: &down, gateway: &right},
		{
			reason: "it could not be looked up, and the gateway's is refused", pull: &down, gateway: new(login(server.Host() + " user:" + wrong)),
			kind: image.Unavailable, says: `imagePullSecret "pull" could not be looked up`,
		},
		{reason: "the gateway's could not be looked up, which comes later", pull: &right, gateway: &down},
		{reason: "the gateway may not read it", pull: &forbidden, kind: image.Refused, says: `imagePullSecret "pull" could not be looked up`},
		{reason: "the gateway may not read it, and has one", pull: &forbidden, gateway: &right},
		{
			reason: "the gateway may not read it, and its own is refused", pull: &forbidden, gateway: new(login(server.Host() + " user:" + wrong)),
			kind: image.Refused, says: `imagePullSecret "pull" could not be looked up`,
		},
		{
			reason: "the gateway may not read it, and another does not answer", pull: &forbidden, account: []string{"!"},
			kind: image.Refused, says: `the service account "default" could not be looked up`,
		},
		{reason: "the service account names as many as are looked up", account: names(20), kind: image.Refused, says: "anonymously"},
		{reason: "the service account names more than are looked up", account: names(21), kind: image.Bound, says: "at most 20"},
		{reason: "the service account names more than are looked up, and the gateway has one", account: names(21), gateway: &right},
		{
			reason: "the service account names more than are looked up, and the gateway's is refused", account: names(21),
			gateway: new(login(server.Host() + " user:" + wrong)), kind: image.Bound, says: "at most 20",
		},
		{reason: "the service account names more than are looked up, and the pod's does not answer", pull: &down, account: names(21), kind: image.Bound, says: "at most 20"},
		{
			reason: "it could not be looked up for a reason of a readable length", pull: &secret{broken: errors.New(strings.Repeat("x", 300))}, account: []string{"!"},
			kind: image.Unavailable, says: ": " + strings.Repeat("x", 300) + "\nthe service account",
		},
		{
			reason: "it could not be looked up for a reason that is a book", pull: &secret{broken: errors.New(strings.Repeat("x", 301))}, account: []string{"!"},
			kind: image.Unavailable, says: ": " + strings.Repeat("x", 300) + "...\nthe service account",
		},
		{reason: "the service account could not be looked up", account: []string{"!"}, kind: image.Unavailable, says: `the service account "default" could not be looked up`},
		{reason: "the service account could not be looked up, which comes later", pull: &right, account: []string{"!"}},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			c := &cluster{secrets: map[string]secret{}, accounts: map[string][]string{"team/default": test.account}}
			if test.pull != nil {
				c.secrets["team/pull"] = *test.pull
			}
			if test.gateway != nil {
				c.secrets["quaymaster/pull"] = *test.gateway
			}
			k := newKeychain(t, c, func(config *keychain.Config) { config.Gateway = []string{"quaymaster/pull"} })
			_, err := resolve(t, k, server.Host(), pod)
			if image.KindOf(err) != test.kind {
				t.Fatalf("%q, want %q: %v", image.KindOf(err), test.kind, err)
			}
			if err != nil && (!strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "hunter")) {
				t.Errorf("the message is %q, want one that contains %q", err, test.says)
			}
		})
	}
}

// TestForbiddenSecretsHideNothingPublic: a gateway without the right to read Secrets reads
// public images anonymously. After a missing answer, or above a bound, an anonymous
// request is no substitute.
func TestForbiddenSecretsHideNothingPublic(t *testing.T) {
	public, private := start(t, registrytest.NoAuth), start(t, registrytest.Basic)
	forbidden := secret{broken: &image.Error{Kind: image.Refused, Op: "get Secret", On: "team/pull"}}
	for _, test := range []struct {
		reason  string
		host    string
		pull    secret
		account []string
		kind    image.Kind // "" means that it is resolved
	}{
		{"it is public", public.Host(), forbidden, nil, ""},
		{"it is public, and another does not answer", public.Host(), forbidden, []string{"!"}, ""},
		{"it is not public", private.Host(), forbidden, nil, image.Refused},
		{"it is public, and the API server is silent", public.Host(), secret{broken: errors.New("down")}, nil, image.Unavailable},
		{"it is public, and more are named than are looked up", public.Host(), forbidden, names(21), image.Bound},
	} {
		c := &cluster{secrets: map[string]secret{"team/pull": test.pull}, accounts: map[string][]string{"team/default": test.account}}
		scope, err := resolve(t, newKeychain(t, c, nil), test.host, pod)
		if image.KindOf(err) != test.kind || err == nil && scope != "anonymous" {
			t.Errorf("%s: %q, want %q, in the scope %q: %v", test.reason, image.KindOf(err), test.kind, scope, err)
		}
		if err != nil && test.kind == image.Refused && !strings.Contains(err.Error(), `imagePullSecret "pull" could not be looked up`) {
			t.Errorf("%s: the message does not say why: %v", test.reason, err)
		}
	}
}

// TestNotThereIsDoubted: with another credential than the one that should have
// been used, a missing image proves nothing.
func TestNotThereIsDoubted(t *testing.T) {
	server := start(t, registrytest.Basic)
	ref := image.MustParse(server.Host() + "/team/app:v2")
	for _, test := range []struct {
		reason string
		pull   secret
		want   image.Kind
	}{
		{"the pod's own credential", login(server.Host() + " user:" + password), image.NotFound},
		{"the gateway's, since the pod's could not be looked up", secret{broken: errors.New("down")}, image.Unavailable},
		{"the gateway's, since it may not read the pod's", secret{broken: &image.Error{Kind: image.Refused}}, image.Refused},
	} {
		c := &cluster{secrets: map[string]secret{"team/pull": test.pull, "quaymaster/pull": login(server.Host() + " user:" + password)}}
		k := newKeychain(t, c, func(config *keychain.Config) { config.Gateway = []string{"quaymaster/pull"} })
		client, _, err := k.Open(t.Context(), pod, ref.Repository())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Resolve(t.Context(), ref); image.KindOf(err) != test.want {
			t.Errorf("%s: %s, want %s: %v", test.reason, image.KindOf(err), test.want, err)
		}
	}
}

func TestAVanishedNamespaceIsAnonymous(t *testing.T) {
	server := start(t, registrytest.NoAuth)
	k := newKeychain(t, &cluster{}, nil)
	scope, err := resolve(t, k, server.Host(), pod)
	if err != nil || scope != "anonymous" {
		t.Errorf("%q, %v", scope, err)
	}
	private := start(t, registrytest.Token)
	_, err = resolve(t, k, private.Host(), pod)
	for _, says := range []string{`imagePullSecret "pull" does not exist`, `the service account "default" does not exist`, "anonymously"} {
		if image.KindOf(err) != image.Refused || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: want a refusal that contains %q", err, says)
		}
	}
}

// TestScopes: equal credentials share, different ones never.
func TestScopes(t *testing.T) {
	const host = "registry.example"
	c := &cluster{secrets: map[string]secret{
		"a/pull": login(host + " user:" + password), "b/pull": login("https://" + host + "/v2/ user:" + password),
		"c/pull": login(host + " user:" + wrong), "d/pull": login("elsewhere.example user:" + password),
		"e/pull": login(host + " other:" + password), "f/pull": login(host + "/team user:" + password),
		"g/pull": login(host+" user:"+password, "elsewhere.example user:"+wrong), "p/pull": login("elsewhere.example user:x"),
		"a/more": login(host + " more:" + password), "a/other": login(host + " other:" + password),
	}}
	k := newKeychain(t, c, nil)
	repository := image.MustParse(host + "/team/app").Repository()
	scope := func(namespace string, change func(*keychain.Request)) string {
		request := keychain.Request{Namespace: namespace, PullSecrets: []string{"pull"}}
		if change != nil {
			change(&request)
		}
		_, scope, err := k.Open(t.Context(), request, repository)
		if err != nil {
			t.Fatal(err)
		}
		return scope
	}
	insecure := func(r *keychain.Request) { r.AllowInsecure = true }
	byPolicy := func(r *keychain.Request) { r.PolicySecrets = []string{"p/pull"} }
	mine := scope("a", nil)
	for _, test := range []struct {
		reason string
		scope  string
		same   bool
	}{
		{"again", scope("a", nil), true},
		{"another namespace with the same credential", scope("b", nil), true},
		{"another namespace, with a Secret that has more for other hosts", scope("g", nil), true},
		{"another password", scope("c", nil), false},
		{"another user", scope("e", nil), false},
		{"the same credential for less", scope("f", nil), false},
		{"a credential for another host", scope("d", nil), false},
		{"none", scope("nowhere", nil), false},
		{"without TLS", scope("a", insecure), false},
		{"with the policy's places for evidence", scope("a", byPolicy), false},
	} {
		if (test.scope == mine) != test.same {
			t.Errorf("%s: scope %q, want one that is the same as %q: %t", test.reason, test.scope, mine, test.same)
		}
		if strings.Contains(test.scope, "hunter") || strings.Contains(test.scope, "user") {
			t.Errorf("%s: scope %q holds a credential", test.reason, test.scope)
		}
	}
	if a, b := scope("d", nil), scope("nowhere", nil); a != b || a != "anonymous" {
		t.Errorf("anonymous has two scopes, %q and %q", a, b)
	}
	more := func(r *keychain.Request) { r.PullSecrets = []string{"pull", "more"} }
	others := func(r *keychain.Request) { r.PullSecrets = []string{"pull", "other"} }
	if a, b := scope("a", more), scope("a", others); a == b || a == mine || b == mine {
		t.Errorf("two credentials have the scope %q, two others %q, and one of them %q", a, b, mine)
	}
	if a, b := scope("a", more), scope("a", more); a != b {
		t.Errorf("the same two credentials have the scopes %q and %q", a, b)
	}
	if a, b := scope("d", insecure), scope("nowhere", nil); a == b {
		t.Errorf("without TLS, anonymous has the same scope %q", a)
	}
	c.mu.Lock()
	c.secrets["a/pull"] = login(host + " user:changed")
	c.mu.Unlock()
	if scope("a", nil) == mine {
		t.Error("a changed Secret has the old scope")
	}
	c.mu.Lock()
	c.secrets["a/pull"] = secret{kind: kindLegacy, data: map[string][]byte{".dockercfg": config(host + " user:changed")}}
	c.mu.Unlock()
	if got := scope("a", nil); got != "anonymous" {
		t.Errorf("a Secret of another type, with content that is not read, has the scope %q", got)
	}
	other := newKeychain(t, c, nil)
	if _, theirs, err := other.Open(t.Context(), keychain.Request{Namespace: "b", PullSecrets: []string{"pull"}}, repository); err != nil || theirs == mine {
		t.Errorf("a keychain with another key has the scope %q, %v", theirs, err)
	}
}

// TestTwoNamespacesOneTag: what one namespace may see, the other may not.
func TestTwoNamespacesOneTag(t *testing.T) {
	server := start(t, registrytest.Token)
	c := &cluster{secrets: map[string]secret{
		"a/pull": login(server.Host() + " user:" + password), "b/pull": login(server.Host() + " user:" + wrong),
	}}
	k := newKeychain(t, c, nil)
	for range 2 { // the second time with all that is remembered
		mine, err := resolve(t, k, server.Host(), keychain.Request{Namespace: "a", PullSecrets: []string{"pull"}})
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := resolve(t, k, server.Host(), keychain.Request{Namespace: "b", PullSecrets: []string{"pull"}})
		if image.KindOf(err) != image.Refused || mine == theirs {
			t.Errorf("b is answered %v under %q, a has %q", err, theirs, mine)
		}
		if _, err := resolve(t, k, server.Host(), keychain.Request{Namespace: "c"}); image.KindOf(err) != image.Refused {
			t.Errorf("c, without credential, is answered %v", err)
		}
	}
}

func TestOneTokenForManyAdmissions(t *testing.T) {
	server := start(t, registrytest.Token)
	c := &cluster{secrets: map[string]secret{
		"a/pull": login(server.Host() + " user:" + password), "b/other": login(server.Host() + " user:" + password),
	}}
	k := newKeychain(t, c, nil)
	var group sync.WaitGroup
	for i := range 100 {
		request := keychain.Request{Namespace: "a", PullSecrets: []string{"pull"}}
		if i%2 == 1 {
			request = keychain.Request{Namespace: "b", PullSecrets: []string{"other"}}
		}
		group.Go(func() {
			if _, err := resolve(t, k, server.Host(), request); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := server.Count("", registrytest.TokenKind); got != 1 {
		t.Errorf("%d tokens for 100 admissions, want 1", got)
	}
	c.mu.Lock()
	c.secrets["a/pull"] = login(server.Host() + " user:" + wrong)
	c.mu.Unlock()
	if _, err := resolve(t, k, server.Host(), keychain.Request{Namespace: "a", PullSecrets: []string{"pull"}}); image.KindOf(err) != image.Refused {
		t.Errorf("the token of a credential that is gone is used on: %v", err)
	}
}

// TestSharedTokensNameTheirOwnPlace: two namespaces share a refused credential,
// and each error names its own Secret.
func TestSharedTokensNameTheirOwnPlace(t *testing.T) {
	server := start(t, registrytest.Basic)
	bad := login(server.Host() + " user:" + wrong)
	k := newKeychain(t, &cluster{secrets: map[string]secret{"a/mine": bad, "b/theirs": bad}}, nil)
	for namespace, name := range map[string]string{"a": "mine", "b": "theirs"} {
		_, err := resolve(t, k, server.Host(), keychain.Request{Namespace: namespace, PullSecrets: []string{name}})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("imagePullSecret %q", name)) {
			t.Errorf("%s gets %v", namespace, err)
		}
	}
}

// TestEvidenceElsewhere: a policy keeps signatures in another repository, which
// its own Secret opens, and the workload's Secrets for other hosts do not.
func TestEvidenceElsewhere(t *testing.T) {
	server, store := start(t, registrytest.Basic), start(t, registrytest.Basic)
	right := login(store.Host() + " user:" + password)
	c := &cluster{secrets: map[string]secret{
		"team/pull": login(server.Host() + " user:" + password), "team/glob": login(strings.Replace(server.Host(), "127", "1*", 1) + " user:" + password),
		"team/store": right, "policies/store": right, "quaymaster/store": right,
		"policies/opaque": {kind: "Opaque", data: right.data}, "policies/down": {broken: errors.New("the API server is down")},
	}}
	with := func(name string) keychain.Request {
		return keychain.Request{Namespace: "team", PullSecrets: []string{"pull"}, PolicySecrets: []string{name}}
	}
	gateway := []string{"quaymaster/store"}
	repository := image.MustParse(server.Host() + "/team/app:v1").Repository()
	there := image.MustParse(store.Host() + "/team/app:v1").Repository()
	for _, test := range []struct {
		reason  string
		request keychain.Request
		gateway []string
		want    image.Kind
	}{
		{"the policy's Secret", with("policies/store"), nil, ""},
		{"the pod's Secret", keychain.Request{Namespace: "team", PullSecrets: []string{"pull", "store"}}, nil, image.Refused},
		{"the pod's wildcard for another registry", keychain.Request{Namespace: "team", PullSecrets: []string{"glob"}}, nil, image.Refused},
		{"the policy's Secret does not exist", with("policies/gone"), nil, image.Refused},
		{"the policy's Secret does not exist, but the gateway's", with("policies/gone"), gateway, ""},
		{"the policy's Secret is of no use", with("policies/opaque"), nil, image.Refused},
		{"the policy's Secret is of no use, but the gateway's", with("policies/opaque"), gateway, ""},
		{"the policy's Secret could not be looked up", with("policies/down"), gateway, image.Unavailable},
	} {
		k := newKeychain(t, c, func(config *keychain.Config) { config.Gateway = test.gateway })
		client, _, err := k.Open(t.Context(), test.request, repository)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := client.Manifest(t.Context(), there, "v1"); image.KindOf(err) != test.want {
			t.Errorf("%s: %q, want %q: %v", test.reason, image.KindOf(err), test.want, err)
		}
		if _, _, err := client.Manifest(t.Context(), repository, "v1"); err != nil {
			t.Errorf("%s, at home: %v", test.reason, err)
		}
	}
}

func TestPlacesAreLookedUpOnlyWhenNeeded(t *testing.T) {
	c := &cluster{
		secrets:  map[string]secret{"team/pull": login("registry.example user:" + password)},
		accounts: map[string][]string{"team/default": {"pull", "more"}},
	}
	k := newKeychain(t, c, func(config *keychain.Config) { config.Gateway = []string{"quaymaster/pull"} })
	for reference, want := range map[string][]string{
		"registry.example/app": {"team/pull"},
		"other.example/app":    {"team/pull", "team/more", "quaymaster/pull"},
	} {
		c.asked = nil
		if _, _, err := k.Open(t.Context(), pod, image.MustParse(reference).Repository()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(c.asked, want) {
			t.Errorf("%s: %v were looked up, want %v", reference, c.asked, want)
		}
	}
}

// TestASecretIsReadOnce: what a Secret has for a host is made out once, for as many
// hosts as are remembered.
func TestASecretIsReadOnce(t *testing.T) {
	const entries, remembered = 200, 64
	var list []string
	for i := range entries {
		list = append(list, fmt.Sprintf("*.example/team%d user:%s", i, password))
	}
	c := &cluster{secrets: map[string]secret{"team/pull": login(list...)}}
	k := newKeychain(t, c, nil)
	anew := func(host int) bool { // measured by its allocations: some for each entry
		repository := image.MustParse(fmt.Sprintf("h%d.example/team7/app", host)).Repository()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, scope, err := k.Open(t.Context(), keychain.Request{Namespace: "team", PullSecrets: []string{"pull"}}, repository)
		runtime.ReadMemStats(&after)
		if err != nil || scope == "anonymous" {
			t.Fatalf("%s: scope %q, %v", repository, scope, err)
		}
		return after.Mallocs-before.Mallocs > entries
	}
	if !anew(0) {
		t.Error("an unread Secret is not read")
	}
	for host := 1; host < remembered; host++ {
		if !anew(host) {
			t.Errorf("host %d: the Secret's entry for it is not determined", host)
		}
	}
	for host := range remembered {
		if anew(host) {
			t.Errorf("host %d: the Secret's entry for it is determined again", host)
		}
	}
	anew(remembered)
	if !anew(0) {
		t.Errorf("more than %d hosts are remembered", remembered)
	}
}

// failing is a provider that has something for everybody, which cannot be had.
type failing struct{ error }

func (f failing) Resolve(authn.Resource) (authn.Authenticator, error) { return f, nil }
func (f failing) Authorization() (*authn.AuthConfig, error)           { return nil, f.error }

func TestOpenRefuses(t *testing.T) {
	for _, test := range []struct {
		reason  string
		request keychain.Request
		says    string
	}{
		{"a policy's Secret without namespace", keychain.Request{PolicySecrets: []string{"pull"}}, "namespace/name"},
		{"a policy's Secret that is a path", keychain.Request{PolicySecrets: []string{"a/b/c"}}, "namespace/name"},
		{"an unknown provider", keychain.Request{PolicyProviders: []string{"oracle"}}, "amazon"},
		{"a policy's Secret in the folder above", keychain.Request{PolicySecrets: []string{"../pull"}}, "namespace/name"},
		{"a policy's Secret that is the folder above", keychain.Request{PolicySecrets: []string{"a/.."}}, "namespace/name"},
		{"a policy's Secret that is the folder", keychain.Request{PolicySecrets: []string{"a/."}}, "namespace/name"},
		{"a policy's Secret with a name that is too long", keychain.Request{PolicySecrets: []string{"a/" + strings.Repeat("x", 254)}}, "namespace/name"},
		{"a provider that fails", keychain.Request{PolicyProviders: []string{"amazon"}}, "the credential provider amazon could not be looked up: the provider failed, and its text is left out"},
		{"a provider without an available credential", keychain.Request{PolicyProviders: []string{"google"}}, "the credential provider google could not be looked up: the provider failed, and its text is left out"},
	} {
		k := newKeychain(t, &cluster{}, func(config *keychain.Config) {
			config.Providers = map[string]registry.Source{
				"amazon": {Name: "the credential provider amazon", Keychain: fixed{err: errors.New(password)}},
				"google": {Name: "the credential provider google", Keychain: failing{errors.New(password)}},
			}
		})
		_, _, err := k.Open(t.Context(), test.request, image.MustParse("registry.example/app").Repository())
		if image.KindOf(err) != image.Unavailable || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %v, want one that contains %q", test.reason, err, test.says)
		}
	}
	k := newKeychain(t, &cluster{}, nil)
	for _, test := range []struct {
		reason  string
		request keychain.Request
	}{
		{"as many Secrets as are looked up", keychain.Request{Namespace: "team", PullSecrets: names(20)}},
		{"a policy's Secret with the longest name", keychain.Request{PolicySecrets: []string{"a/" + strings.Repeat("x", 253)}}},
	} {
		if _, _, err := k.Open(t.Context(), test.request, image.MustParse("registry.example/app").Repository()); err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
	tooMany := keychain.Request{Namespace: "team", PullSecrets: names(21)}
	if _, _, err := k.Open(t.Context(), tooMany, image.MustParse("registry.example/app").Repository()); image.KindOf(err) != image.Bound || !strings.Contains(err.Error(), "at most 20") {
		t.Errorf("more Secrets than are looked up: %v", err)
	}
	if _, _, err := k.Open(t.Context(), keychain.Request{}, image.Repository{}); image.KindOf(err) != image.Unavailable || !strings.Contains(err.Error(), "empty") {
		t.Errorf("no repository: %v", err)
	}
}

// TestNamesThatAreNone are not requested, and the empty one is not reported.
func TestNamesThatAreNone(t *testing.T) {
	server := start(t, registrytest.Basic)
	c := &cluster{}
	k := newKeychain(t, c, nil)
	_, err := resolve(t, k, server.Host(), keychain.Request{Namespace: "team", PullSecrets: []string{"../../kube-system/x", ""}})
	if image.KindOf(err) != image.Refused || !strings.Contains(err.Error(), `imagePullSecret "../../kube-system/x" is no name of a Secret`) {
		t.Errorf("%v: want a refusal that quotes the invalid name", err)
	}
	if err != nil && (strings.Contains(err.Error(), `imagePullSecret ""`) || strings.Contains(err.Error(), "service account")) {
		t.Errorf("%v: mentions the empty name", err)
	}
	if len(c.asked) > 0 {
		t.Errorf("%v were asked for", c.asked)
	}
}

// TestPlacesThatAreNotReadHere: without access to them, those of a workload
// are left out, and a policy's are refused.
func TestPlacesThatAreNotReadHere(t *testing.T) {
	noSecrets := func(config *keychain.Config) { config.Secrets = nil }
	noAccounts := func(config *keychain.Config) { config.Accounts = nil }
	for _, test := range []struct {
		reason  string
		without func(*keychain.Config)
		request keychain.Request
		says    string // "" means that it is anonymous
	}{
		{"none is named", noSecrets, keychain.Request{}, ""},
		{"a pod's Secret and service account", noSecrets, pod, ""},
		{"a service account", noAccounts, pod, ""},
		{"a policy's Secret", noSecrets, keychain.Request{PolicySecrets: []string{"a/b"}}, "a/b: Secrets are not read here"},
		{"a policy's Secret that does not exist", noAccounts, keychain.Request{PolicySecrets: []string{"a/b"}}, ""},
		{"a policy's Secret, and an unknown provider", noSecrets, keychain.Request{PolicySecrets: []string{"a/b"}, PolicyProviders: []string{"oracle"}}, "oracle"},
	} {
		k := newKeychain(t, &cluster{}, test.without)
		_, scope, err := k.Open(t.Context(), test.request, image.MustParse("registry.example/app").Repository())
		switch {
		case test.says == "" && (err != nil || !strings.HasPrefix(scope, "anonymous")):
			t.Errorf("%s: scope %q, %v", test.reason, scope, err)
		case test.says != "" && (image.KindOf(err) != image.Unavailable || !strings.Contains(err.Error(), test.says)):
			t.Errorf("%s: %v, want one that contains %q", test.reason, err, test.says)
		}
	}
}

// TestInsecure: TLS is given up only by an insecure client.
func TestInsecure(t *testing.T) {
	server := registrytest.Start(registrytest.Options{TLS: true})
	t.Cleanup(server.Close)
	server.PutImage("team/app", "v1", "content")
	k := newKeychain(t, &cluster{}, nil)
	for _, test := range []struct {
		insecure bool
		want     image.Kind
	}{{true, ""}, {false, image.Unavailable}} {
		if _, err := resolve(t, k, server.Host(), keychain.Request{AllowInsecure: test.insecure}); image.KindOf(err) != test.want {
			t.Errorf("insecure %t, with a certificate of an unknown authority: %q, want %q: %v", test.insecure, image.KindOf(err), test.want, err)
		}
	}
}

// counted is a provider that counts how often it is asked.
type counted struct {
	fixed
	asked *int
}

func (c counted) Resolve(target authn.Resource) (authn.Authenticator, error) {
	*c.asked++
	return c.fixed.Resolve(target)
}

// TestAProviderIsAskedNowAndThen: a credential is cached for longer than the answer
// that there is none, which clouds give for failures, too.
func TestAProviderIsAskedNowAndThen(t *testing.T) {
	for _, test := range []struct {
		reason, reference, scope string
		age                      time.Duration
	}{
		{"it has a credential", "registry.example/app", "provider amazon", 10 * time.Minute},
		{"it has none", "other.example/app", "anonymous", time.Minute},
	} {
		t.Run(test.reason, func(t *testing.T) {
			asked := 0
			k := newKeychain(t, nil, func(config *keychain.Config) {
				provider := counted{fixed{host: "registry.example", auth: authn.AuthConfig{Username: "user", Password: password}}, &asked}
				config.Secrets, config.Accounts, config.Cloud = nil, nil, []string{"amazon"}
				config.Providers = map[string]registry.Source{"amazon": {Name: "the credential provider amazon", Keychain: provider}}
			})
			synctest.Test(t, func(t *testing.T) {
				for _, step := range []struct {
					after time.Duration
					asked int
				}{{0, 1}, {0, 1}, {test.age - time.Second, 1}, {time.Second, 2}} {
					<-time.After(step.after)
					_, scope, err := k.Open(t.Context(), keychain.Request{}, image.MustParse(test.reference).Repository())
					if err != nil || scope != test.scope || asked != step.asked {
						t.Errorf("after %s: scope %q, want %q, asked %d times, want %d: %v", step.after, scope, test.scope, asked, step.asked, err)
					}
				}
			})
		})
	}
}

func TestNewRefuses(t *testing.T) {
	client, err := registry.New(registry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		reason string
		config keychain.Config
		says   string // "" means that it is taken
	}{
		{"the least", keychain.Config{Registry: client}, ""},
		{"no client", keychain.Config{}, "registry client"},
		{"Secrets and no access to them", keychain.Config{Registry: client, Gateway: []string{"a/b"}}, "look them up"},
		{"a Secret without namespace", keychain.Config{Registry: client, Secrets: &cluster{}, Gateway: []string{"b"}}, "namespace/name"},
		{"a short key", keychain.Config{Registry: client, Key: make([]byte, 15)}, "at least 16"},
		{"the shortest key", keychain.Config{Registry: client, Key: make([]byte, 16)}, ""},
		{"a provider that is not there", keychain.Config{Registry: client, Cloud: []string{"amazon"}}, "amazon"},
		{"a provider", keychain.Config{Registry: client, Providers: map[string]registry.Source{"x": {Name: "x", Keychain: fixed{}}}}, ""},
		{"a provider without keychain", keychain.Config{Registry: client, Providers: map[string]registry.Source{"x": {Name: "x"}}}, "keychain"},
		{"a provider that policies cannot name", keychain.Config{Registry: client, Providers: map[string]registry.Source{"": {Name: "x", Keychain: fixed{}}}}, "want a name"},
		{"a provider that messages cannot name", keychain.Config{Registry: client, Providers: map[string]registry.Source{"x": {Keychain: fixed{}}}}, "want a name"},
	} {
		_, err := keychain.New(test.config)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		}
	}
}
