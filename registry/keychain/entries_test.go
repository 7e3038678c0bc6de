package keychain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// TestARefusalNamesTheEntries: by host and path, never by credential.
func TestARefusalNamesTheEntries(t *testing.T) {
	server := start(t, registrytest.Token)
	host := server.Host()
	c := &cluster{secrets: map[string]secret{
		"team/two": login(host+"/team narrow:"+wrong, host+" wide:"+wrong), "team/one": login(host + " wide:" + wrong),
	}}
	k := newKeychain(t, c, nil)
	for name, want := range map[string]string{
		"two": fmt.Sprintf(`imagePullSecret "two" (entry %q) and from imagePullSecret "two" (entry %q)`, host+"/team", host),
		"one": `imagePullSecret "one" does not`,
	} {
		_, err := resolve(t, k, host, keychain.Request{Namespace: "team", PullSecrets: []string{name}})
		if image.KindOf(err) != image.Refused || !strings.Contains(fmt.Sprint(err), want) || strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q in it", name, err, want)
		}
	}
}

// TestTheEntryThatDoesIsKept: the entries before it are not tried again.
func TestTheEntryThatDoesIsKept(t *testing.T) {
	server := start(t, registrytest.Token)
	host := server.Host()
	k := newKeychain(t, &cluster{secrets: map[string]secret{"team/pull": login(host+"/team narrow:"+wrong, host+" user:"+password)}}, nil)
	for attempt, want := range []int{5, 1} { // a challenge, two requests for tokens and an answer; then the answer alone
		server.Reset()
		if _, err := resolve(t, k, host, keychain.Request{Namespace: "team", PullSecrets: []string{"pull"}}); err != nil {
			t.Fatal(err)
		}
		if got := server.Count(""); got > want {
			t.Errorf("attempt %d: %d requests, want at most %d", attempt, got, want)
		}
	}
}

// TestCredentialsAreBounded: the author of a workload writes the entries, and each costs
// the registry requests.
func TestCredentialsAreBounded(t *testing.T) {
	for _, test := range []struct {
		reason string
		narrow int // credentials before the right one
		kind   image.Kind
		tried  int
	}{
		{"the last that is tried does", 19, "", 20},
		{"the first that is not tried would do", 20, image.Bound, 20},
		{"many more", 60, image.Bound, 20},
	} {
		server := start(t, registrytest.Basic)
		host := server.Host()
		c := &cluster{secrets: map[string]secret{"team/last": login(host + " user:" + password)}}
		var names []string
		for i := range test.narrow {
			name := fmt.Sprint("s", i/8)
			if i%8 == 0 {
				var entries []string
				for j := range min(8, test.narrow-i) {
					entries = append(entries, fmt.Sprintf("%s/%s user%d:%s", host, "team/app"[:j+1], i+j, wrong))
				}
				c.secrets["team/"+name] = login(entries...)
				names = append(names, name)
			}
		}
		_, err := resolve(t, newKeychain(t, c, nil), host, keychain.Request{Namespace: "team", PullSecrets: append(names, "last")})
		if image.KindOf(err) != test.kind {
			t.Errorf("%s: %v, want %q", test.reason, err, test.kind)
		}
		if err != nil && !strings.Contains(err.Error(), "at most 20 credentials are tried") {
			t.Errorf("%s: the bound is not named: %v", test.reason, err)
		}
		sent := map[string]bool{}
		for _, q := range server.Requests() {
			if credential := q.Header.Get("Authorization"); credential != "" {
				sent[credential] = true
			}
		}
		if len(sent) != test.tried {
			t.Errorf("%s: %d credentials were tried, want %d", test.reason, len(sent), test.tried)
		}
	}
}

// TestFileSources are what a command line has of a Secret: a source for each entry.
func TestFileSources(t *testing.T) {
	server := start(t, registrytest.Basic)
	host := server.Host()
	ref := image.MustParse(host + "/team/app:v1")
	for _, test := range []struct {
		reason  string
		content []byte
		kind    image.Kind
		says    string
	}{
		{"the narrowest does", config(host+"/team user:"+password, host+" wide:x"), "", ""},
		{"the next one does", config(host+"/team narrow:x", host+" user:"+password), "", ""},
		{"the wildcard does", config(host+" wide:x", strings.Replace(host, "127", "1*", 1)+" user:"+password), "", ""},
		{"none does", config(host+"/team narrow:x", host+" wide:x"), image.Refused, fmt.Sprintf("the file (entry %q)", host+"/team")},
		{"another repository's is not tried", config(host+"/other user:"+password, host+" wide:x"), image.Refused, "the file does not"},
		{"another host's is not tried", config("other.example user:" + password), image.Refused, "anonymously"},
	} {
		file, err := keychain.ParseFile(test.content)
		if err != nil {
			t.Fatal(err)
		}
		client, err := registry.New(registry.Config{Credentials: file.Sources("the file")})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Resolve(t.Context(), ref)
		client.Close()
		if image.KindOf(err) != test.kind || test.says != "" && !strings.Contains(fmt.Sprint(err), test.says) {
			t.Errorf("%s: %v, want %q and %q", test.reason, err, test.kind, test.says)
		}
	}
	long := make([]string, 0, 30)
	for i := range 30 { // as many wildcards, each for the host
		long = append(long, strings.Repeat("*", i+1)+strings.TrimPrefix(host, "127")+fmt.Sprintf(" user%d:x", i))
	}
	file, err := keychain.ParseFile(config(long...))
	if err != nil {
		t.Fatal(err)
	}
	client, err := registry.New(registry.Config{Credentials: file.Sources("the file")})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.Resolve(t.Context(), ref); image.KindOf(err) != image.Bound || !strings.Contains(err.Error(), "at most 20 credentials are tried") {
		t.Errorf("thirty entries: %v, want the bound", err)
	}
}

// TestEntriesForEvidenceElsewhere: a repository that a policy keeps evidence in has all
// entries of the same Secret, those that are not for the image, too.
func TestEntriesForEvidenceElsewhere(t *testing.T) {
	for _, test := range []struct {
		reason string
		pull   []string // entries, with HOST
		policy []string
		kind   image.Kind
	}{
		{"one entry for both", []string{"HOST right"}, nil, ""},
		{"an entry for each", []string{"HOST/team right", "HOST/evidence right"}, nil, ""},
		{"the second of two for the evidence", []string{"HOST/team right", "HOST/evidence wrong", "HOST right"}, nil, ""},
		{"all for the evidence are refused", []string{"HOST/team right", "HOST/evidence wrong", "HOST wrong2"}, nil, image.Refused},
		{"the second entry of the policy's Secret", []string{"HOST/team right"}, []string{"HOST/evidence wrong", "HOST right"}, ""},
		{"the policy's Secret has none for it", []string{"HOST/team right"}, []string{"HOST/evidence wrong", "HOST/other right"}, image.Refused},
	} {
		server := start(t, registrytest.Basic)
		server.PutImage("evidence", "v1", "content")
		of := func(entries []string) secret {
			for i, e := range entries {
				where, who, _ := strings.Cut(e, " ")
				who = who + ":" + wrong
				if strings.HasPrefix(who, "right") {
					who = "user:" + password
				}
				entries[i] = strings.Replace(where, "HOST", server.Host(), 1) + " " + who
			}
			return login(entries...)
		}
		c := &cluster{secrets: map[string]secret{"team/pull": of(test.pull)}}
		request := keychain.Request{Namespace: "team", PullSecrets: []string{"pull"}}
		if test.policy != nil {
			c.secrets["policies/store"], request.PolicySecrets = of(test.policy), []string{"policies/store"}
		}
		home := image.MustParse(server.Host() + "/team/app:v1").Repository()
		client, _, err := newKeychain(t, c, nil).Open(t.Context(), request, home)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := client.Manifest(t.Context(), home, "v1"); err != nil {
			t.Errorf("%s: the image: %v", test.reason, err)
		}
		_, _, err = client.Manifest(t.Context(), image.MustParse(server.Host()+"/evidence:v1").Repository(), "v1")
		if image.KindOf(err) != test.kind {
			t.Errorf("%s: %v, want %q", test.reason, err, test.kind)
		}
	}
}

// TestScopesOfEntries: a result for all entries of one Secret is not served to a
// workload that has some of them.
func TestScopesOfEntries(t *testing.T) {
	server := start(t, registrytest.Token)
	host := server.Host()
	c := &cluster{secrets: map[string]secret{
		"a/pull": login(host+"/team narrow:"+wrong, host+" user:"+password), "b/pull": login(host + "/team narrow:" + wrong),
		"c/pull": login(host+"/team narrow:"+wrong, host+" user:"+password),
	}}
	k := newKeychain(t, c, nil)
	scopes := map[string]string{}
	for range 2 {
		for namespace, kind := range map[string]image.Kind{"a": "", "b": image.Refused, "c": ""} {
			scope, err := resolve(t, k, host, keychain.Request{Namespace: namespace, PullSecrets: []string{"pull"}})
			if image.KindOf(err) != kind {
				t.Errorf("%s: %v, want %q", namespace, err, kind)
			}
			scopes[namespace] = scope
		}
	}
	if scopes["a"] == scopes["b"] || scopes["a"] != scopes["c"] {
		t.Errorf("scopes %v: want a and c equal, b another", scopes)
	}
}
