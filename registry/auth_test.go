package registry_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

const password = "hunter2-hunter2"

var (
	user      = authn.AuthConfig{Username: "user", Password: password}
	userBasic = base64.StdEncoding.EncodeToString([]byte("user:" + password))
)

func credentials(prefix string, config authn.AuthConfig) []registry.Source {
	return []registry.Source{{Name: "the test's keychain", Keychain: static{prefix: prefix, config: config}}}
}

func TestAuthentication(t *testing.T) {
	basic := registrytest.Auth{Scheme: registrytest.Basic, Username: "user", Password: password}
	token := registrytest.Auth{Scheme: registrytest.Token, Username: "user", Password: password, IdentityToken: "identity"}
	public := token
	public.AnonymousPull = true
	wrong := authn.AuthConfig{Username: "user", Password: "hunter3-hunter3"}
	tests := []struct {
		reason   string
		auth     registrytest.Auth
		config   *authn.AuthConfig
		requests int // of the first call
		again    int // of the second call
		refused  string
	}{
		{reason: "no authentication", requests: 1, again: 1},
		{reason: "a credential that is not required is not sent", config: &user, requests: 1, again: 1},
		{reason: "basic", auth: basic, config: &user, requests: 2, again: 1},
		{reason: "basic, anonymous", auth: basic, refused: "anonymously"},
		{reason: "basic, wrong", auth: basic, config: &wrong, refused: "the test's keychain"},
		{reason: "token", auth: token, config: &user, requests: 3, again: 1},
		{reason: "token, in one field", auth: token, config: &authn.AuthConfig{Auth: userBasic}, requests: 3, again: 1},
		{reason: "token, anonymous", auth: token, refused: "anonymously"},
		{reason: "token, wrong", auth: token, config: &wrong, refused: "the test's keychain"},
		{reason: "token, anonymous where that is allowed", auth: public, requests: 3, again: 1},
		{reason: "token for an identity token", auth: token, config: &authn.AuthConfig{IdentityToken: "identity"}, requests: 3, again: 1},
		{reason: "token for a wrong identity token", auth: token, config: &authn.AuthConfig{IdentityToken: "other"}, refused: "the test's keychain"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Options{Auth: test.auth})
			server.PutImage("team/app", "v1", "content")
			var config registry.Config
			if test.config != nil {
				config.Credentials = credentials(server.Host(), *test.config)
			}
			client := newClient(t, config)
			ref := image.MustParse(server.Host() + "/team/app:v1")
			_, err := client.Resolve(t.Context(), ref)
			if test.refused != "" {
				failure := wantFailure(t, err, image.Refused)
				if !strings.Contains(failure.Hint, test.refused) || strings.Contains(err.Error(), "hunter") || strings.Contains(err.Error(), "identity") {
					t.Errorf("the message is %q", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := server.Count(""); got != test.requests || server.Rounds() != got {
				t.Errorf("%d requests in %d rounds, want %d: %v", got, server.Rounds(), test.requests, server.Requests())
			}
			if test.auth.Scheme == registrytest.NoAuth && server.SawAuthorization() {
				t.Error("a credential was sent unasked")
			}
			server.Reset()
			if _, err := client.Resolve(t.Context(), ref); err != nil || server.Count("") != test.again {
				t.Errorf("again: %d requests, want %d, %v", server.Count(""), test.again, err)
			}
		})
	}
}

func TestTokensAreFetchedOnceAndAgainWhenExpired(t *testing.T) {
	server := start(t, registrytest.Options{Delay: 20 * time.Millisecond, Auth: registrytest.Auth{Scheme: registrytest.Token, Username: "user", Password: password}})
	server.PutImage("app", "v1", "content")
	client := newClient(t, registry.Config{Credentials: credentials(server.Host(), user)})
	ref := image.MustParse(server.Host() + "/app:v1")
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if _, err := client.Resolve(t.Context(), ref); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if got := server.Count("", registrytest.TokenKind); got != 1 {
		t.Errorf("%d tokens for five requests at once, want 1", got)
	}
	server.ExpireTokens()
	server.Reset()
	if _, err := client.Resolve(t.Context(), ref); err != nil || server.Count("", registrytest.TokenKind) != 1 {
		t.Errorf("after the token expired: %d new tokens, %v", server.Count("", registrytest.TokenKind), err)
	}
}

func TestCredentialsAreOfARepository(t *testing.T) {
	for _, scheme := range []registrytest.Scheme{registrytest.Basic, registrytest.Token} {
		t.Run(string(scheme), func(t *testing.T) {
			server := start(t, registrytest.Options{Auth: registrytest.Auth{Scheme: scheme, Username: "user", Password: password}})
			server.PutImage("mine/app", "v1", "content")
			server.PutImage("theirs/app", "v1", "content")
			client := newClient(t, registry.Config{Credentials: credentials(server.Host()+"/mine/", user)})
			if _, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/mine/app:v1")); err != nil {
				t.Fatal(err)
			}
			_, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/theirs/app:v1"))
			wantKind(t, err, image.Refused)
			other, err := client.WithCredentials(credentials(server.Host()+"/theirs/", user)...)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := other.Resolve(t.Context(), image.MustParse(server.Host()+"/theirs/app:v1")); err != nil {
				t.Errorf("with a credential for it: %v", err)
			}
			_, err = other.Resolve(t.Context(), image.MustParse(server.Host()+"/mine/app:v1"))
			wantKind(t, err, image.Refused)
		})
	}
}

// broken is a keychain with a helper that fails and prints the secret.
type broken struct{}

func (broken) Resolve(authn.Resource) (authn.Authenticator, error) {
	return nil, fmt.Errorf("helper printed %s", password)
}

func TestABrokenKeychainIsIndeterminate(t *testing.T) {
	server := start(t, registrytest.Options{Auth: registrytest.Auth{Scheme: registrytest.Basic, Username: "user", Password: password}})
	client := newClient(t, registry.Config{Credentials: []registry.Source{{Name: "the helper", Keychain: broken{}}}})
	_, err := client.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1"))
	failure := wantFailure(t, err, image.Unavailable)
	if strings.Contains(err.Error(), password) || !strings.Contains(err.Error(), "the helper") || failure.Temporary() {
		t.Errorf("the message is %q", err)
	}
}

// TestRealms has a registry under one name ask for its credential at another.
func TestRealms(t *testing.T) {
	tests := []struct {
		reason      string
		home, realm string
		plainRealm  bool
		plainHome   bool
		extra       map[string][]string
		anonymous   bool
		kind        image.Kind
	}{
		{reason: "the same domain over TLS", home: "registry.corp.example.com", realm: "auth.corp.example.com"},
		{reason: "another domain", home: "registry.example.com", realm: "auth.example.org", kind: image.Refused},
		{reason: "another domain that the user listed", home: "registry.example.com", realm: "auth.example.org", extra: map[string][]string{"registry.example.com": {"auth.example.org"}}},
		{reason: "another domain that the user listed for another registry", home: "registry.example.com", realm: "auth.example.org", extra: map[string][]string{"other.example.com": {"auth.example.org"}}, kind: image.Refused},
		{reason: "two customers under one public suffix", home: "one.github.io", realm: "two.github.io", kind: image.Refused},
		{reason: "two services of one cluster", home: "registry.a.svc.cluster.local", realm: "fisher.b.svc.cluster.local", kind: image.Refused},
		{reason: "without TLS", home: "registry.example.com", realm: "auth.example.com", plainRealm: true, kind: image.Unavailable},
		{reason: "plain HTTP on both sides and another host", home: "registry.example.com", realm: "auth.example.com", plainHome: true, plainRealm: true, kind: image.Refused},
		{reason: "plain HTTP on both sides and the same host", home: "registry.example.com", realm: "registry.example.com", plainHome: true, plainRealm: true},
		{reason: "nothing to lose at another domain", home: "registry.example.com", realm: "auth.example.org", anonymous: true},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			auth := registrytest.Auth{Scheme: registrytest.Token, Username: "user", Password: password, AnonymousPull: true}
			// One certificate for both names lets the client trust both servers.
			realm := start(t, registrytest.Options{TLS: !test.plainRealm, Names: []string{test.home, test.realm}, Auth: auth})
			scheme := "https://"
			if test.plainRealm {
				scheme = "http://"
			}
			auth.Realm = scheme + test.realm + ":" + realm.Port() + "/token"
			home := start(t, registrytest.Options{TLS: !test.plainHome, Names: []string{test.home}, Auth: auth})
			host := test.home + ":" + home.Port()
			config := named(registry.Config{RootCAs: home.CertPool()}, test.home, test.realm)
			if realm.CertPEM() != nil {
				if config.RootCAs == nil {
					config.RootCAs = realm.CertPool()
				}
				config.RootCAs.AppendCertsFromPEM(realm.CertPEM())
			}
			if test.plainHome {
				config.PlainHTTP = []string{host}
			}
			if !test.anonymous {
				config.Credentials = credentials(host, user)
			}
			config.Realms = map[string][]string{}
			for name, hosts := range test.extra {
				config.Realms[name+":"+home.Port()] = hosts
			}
			_, err := newClient(t, config).Resolve(t.Context(), image.MustParse(host+"/app:v1"))
			asked := realm.Count("", registrytest.TokenKind) > 0
			if test.kind != "" {
				wantKind(t, err, test.kind)
				if asked || realm.Saw(userBasic) {
					t.Errorf("the token service was asked: %v", realm.Requests())
				}
				return
			}
			// The token of another server is not accepted: the test checks that it
			// was fetched.
			if !asked || realm.Saw(userBasic) == test.anonymous {
				t.Errorf("asked: %v, with the credential: %v, %v", asked, realm.Saw(userBasic), err)
			}
		})
	}
}

func TestRedirectsLoseTheCredential(t *testing.T) {
	body := strings.Repeat("content", 10)
	for _, scheme := range []registrytest.Scheme{registrytest.Basic, registrytest.Token} {
		t.Run(string(scheme), func(t *testing.T) {
			store := start(t, registrytest.Options{})
			pushed := store.PutBlob("app", "a/b", []byte(body))
			path := "/v2/app/blobs/" + pushed.Digest
			// A second hop on the same foreign host must not bring it back.
			store.SetFaults(registrytest.Fault{Kind: registrytest.Blob, Nth: 1, Do: registrytest.RedirectTo(path + "?signature=s3cret")})
			server := start(t, registrytest.Options{Auth: registrytest.Auth{Scheme: scheme, Username: "user", Password: password}})
			server.SetFaults(registrytest.Fault{Kind: registrytest.Blob, Do: registrytest.RedirectTo(store.URL() + path)})
			client := newClient(t, registry.Config{Credentials: credentials(server.Host(), user)})
			descriptor := image.Descriptor{Digest: image.MustParseDigest(pushed.Digest), Size: pushed.Size}
			repo := repository(t, server.Host()+"/app")
			got, err := client.Blob(t.Context(), repo, descriptor, 1000)
			if err != nil || string(got) != body {
				t.Fatalf("%q, %v", got, err)
			}
			if store.Count("") != 2 || store.SawAuthorization() {
				t.Errorf("the store saw a credential: %v", store.Requests())
			}
			store.SetFaults(registrytest.Fault{Nth: 1, Do: registrytest.RedirectTo(path + "?signature=s3cret")}, registrytest.Fault{Do: registrytest.Status(500)})
			if _, err = client.Blob(t.Context(), repo, descriptor, 1000); err == nil || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the message is %v", err)
			}
			// A store that asks for the credential by itself does not get it.
			store.SetFaults(registrytest.Fault{Do: registrytest.Status(http.StatusUnauthorized, "Www-Authenticate", `Basic realm="store"`)})
			_, err = client.Blob(t.Context(), repo, descriptor, 1000)
			wantKind(t, err, image.Refused)
			if store.SawAuthorization() {
				t.Error("the store got the credential by a challenge")
			}
		})
	}
}

func TestRedirectsThatAreNotFollowed(t *testing.T) {
	plain := start(t, registrytest.Options{})
	pushed := plain.PutImage("app", "v1", "content")
	const home = "registry.example.com"
	server := start(t, registrytest.Options{TLS: true, Names: []string{home}})
	config := named(registry.Config{RootCAs: server.CertPool(), PlainHTTP: []string{"plain.example.com"}}, home, "plain.example.com")
	client := newClient(t, config)
	tests := []struct{ reason, target string }{
		{"out of TLS", "http://plain.example.com:" + plain.Port() + "/v2/app/manifests/v1"},
		{"to this machine by address", "https://127.0.0.1:" + server.Port() + "/v2/app/manifests/v1"},
		{"to this machine by name", "https://localhost:" + server.Port() + "/v2/app/manifests/v1"},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			server.SetFaults(registrytest.Fault{Repository: "app", Nth: 1, Do: registrytest.RedirectTo(test.target)})
			server.Reset()
			_, _, err := client.Manifest(t.Context(), repository(t, home+":"+server.Port()+"/app"), pushed.Digest)
			wantKind(t, err, image.Unavailable)
			if plain.Count("") != 0 || server.Count("") < 1 {
				t.Errorf("it was followed: %v", plain.Requests())
			}
			for _, request := range server.Requests() {
				if !strings.HasPrefix(request.Host, home) {
					t.Errorf("it was followed to %s", request.Host)
				}
			}
		})
	}
}

func TestNamesThatPointHome(t *testing.T) {
	server := start(t, registrytest.Options{})
	server.PutImage("app", "v1", "content")
	config := named(registry.Config{}, "hidden.example.com")
	config.PlainHTTP = []string{"hidden.example.com:" + server.Port()}
	ref := image.MustParse("hidden.example.com:" + server.Port() + "/app:v1")
	if _, err := newClient(t, config).Resolve(t.Context(), ref); err != nil {
		t.Fatalf("a listed name: %v", err)
	}
	server.Reset()
	config.Loopback = nil
	_, err := newClient(t, config).Resolve(t.Context(), ref)
	failure := wantFailure(t, err, image.Unavailable)
	if server.Count("") != 0 || failure.Temporary() || !image.IsByHost(err) || failure.Hint == "" || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("%d requests, %v", server.Count(""), err)
	}
}

func TestTLSIsExpected(t *testing.T) {
	server := start(t, registrytest.Options{TLS: true})
	server.PutImage("app", "v1", "content")
	ref := image.MustParse(server.Host() + "/app:v1")
	tls := registry.Config{LoopbackTLS: []string{server.Host()}}
	_, err := newClient(t, tls).Resolve(t.Context(), ref)
	if failure := wantFailure(t, err, image.Unavailable); !image.IsByHost(err) || !strings.Contains(failure.Hint, "--registry-ca") || server.Count("") != 0 {
		t.Errorf("an unknown authority: %v", err)
	}
	tls.RootCAs = server.CertPool()
	if _, err := newClient(t, tls).Resolve(t.Context(), ref); err != nil {
		t.Errorf("a known authority: %v", err)
	}
	tls.LoopbackTLS = nil
	client := newClient(t, tls)
	for range 2 {
		if _, err := client.Resolve(t.Context(), ref); err != nil {
			t.Errorf("a loopback host that has TLS: %v", err)
		}
	}
	tls.PlainHTTP = []string{server.Host()}
	server.Reset()
	_, err = newClient(t, tls).Resolve(t.Context(), ref)
	wantKind(t, err, image.Corrupt) // HTTP 400
	if server.Count("") != 0 {
		t.Error("a host that is to be asked over plain HTTP was asked over TLS")
	}
}

func TestNoTLSWhereItIsExpected(t *testing.T) {
	server := start(t, registrytest.Options{})
	config := registry.Config{LoopbackTLS: []string{server.Host()}}
	_, err := newClient(t, config).Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1"))
	if failure := wantFailure(t, err, image.Unavailable); !image.IsByHost(err) || !strings.HasSuffix(failure.Hint, "set --plain-http "+server.Host()) || server.Count("") != 0 {
		t.Errorf("got %v", err)
	}
}
