package keychain_test

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/keychain"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// userFor returns the user that a configuration has for a repository, or "".
func userFor(t testing.TB, file *keychain.File, repository string) string {
	t.Helper()
	r, err := image.ParseRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	authenticator, err := file.Resolve(registry.Resource(r))
	if err != nil {
		t.Fatal(err)
	}
	found, err := authn.Authorization(t.Context(), authenticator)
	if err != nil {
		t.Fatal(err)
	}
	return found.Username
}

// TestEntries: each entry applies to the same registries as for the kubelet.
func TestEntries(t *testing.T) {
	for _, test := range []struct {
		reason, entry, repository string
		matches                   bool
	}{
		{"its host", "registry.example", "registry.example/team/app", true},
		{"another host", "registry.example", "other.example/team/app", false},
		{"a host that only begins alike", "registry.example", "registry.example.evil.test/app", false},
		{"a host that only ends alike", "registry.example", "my.registry.example/app", false},
		{"upper case", "Registry.Example", "registry.example/app", true},
		{"a URL", "https://registry.example", "registry.example/app", true},
		{"a URL of the first protocol", "https://registry.example/v1/", "registry.example/app", true},
		{"a URL of the second protocol", "http://registry.example/v2", "registry.example/app", true},
		{"a path", "registry.example/team", "registry.example/team/app", true},
		{"a path below the protocol", "https://registry.example/v2/team", "registry.example/team/app", true},
		{"another path", "registry.example/team", "registry.example/other/app", false},
		{"a path that is only the beginning of a word, as the kubelet has it", "registry.example/team", "registry.example/team2/app", true},
		{"a path that ends", "registry.example/team/", "registry.example/team2/app", false},
		{"a port", "registry.example:5000", "registry.example:5000/app", true},
		{"another port", "registry.example:5000", "registry.example:5001/app", false},
		{"a port that was not written", "registry.example", "registry.example:5000/app", false},
		{"the port of TLS", "registry.example:443", "registry.example/app", true},
		{"a wildcard", "*.example", "registry.example/app", true},
		{"a wildcard in the middle", "registry.*.example", "registry.eu.example/app", true},
		{"a part of a label", "reg*.example", "registry.example/app", true},
		{"a range", "registry[0-9].example", "registry7.example/app", true},
		{"a range of a first label", "[a-c].example", "b.example/app", true},
		{"a wildcard stays in its label", "*.example", "a.registry.example/app", false},
		{"a wildcard is no suffix", "*.example", "registry.example.test/app", false},
		{"a wildcard with a port", "*.example:5000", "registry.example:5000/app", true},
		{"a wildcard without the port", "*.example", "registry.example:5000/app", false},
		{"a wildcard with a path", "*.example/team", "registry.example/team/app", true},
		{"a wildcard with another path", "*.example/team", "registry.example/other/app", false},
		{"a wildcard in the last label is not for a port", "*.exampl*", "registry.example:5000/app", false},
		{"a wildcard in the last label", "*.exampl*", "registry.example/app", true},
		{"a range from a colon on, which is no address", "x[:-a].example:5000", "xa.example:5000/app", true},
		{"a wildcard for an address", "*", "[2001:db8::1]/app", true},
		{"a wildcard for an address with a port", "*", "[2001:db8::1]:5000/app", false},
		{"an address", "[2001:db8::1]:5000", "[2001:db8::1]:5000/app", true},
		{"Docker Hub's old name", "https://index.docker.io/v1/", "nginx", true},
		{"Docker Hub's name", "docker.io", "docker.io/library/nginx", true},
		{"Docker Hub's host", "registry-1.docker.io", "nginx", true},
		{"Docker Hub's path", "docker.io/team", "team/app", true},
		{"another path of Docker Hub", "docker.io/team", "nginx", false},
		{"Docker Hub is not everybody", "https://index.docker.io/v1/", "registry.example/nginx", false},
		{"nobody", "", "nginx", false},
		{"a URL with a user", "https://evil@registry.example", "registry.example/app", false},
		{"a broken wildcard", "[a.example", "a.example/app", false},
		{"a wildcard with an escape", `*.e\xample`, "registry.example/app", false},
	} {
		file, err := keychain.ParseFile(config(test.entry + " user:" + password))
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
			continue
		}
		if got := userFor(t, file, test.repository) != ""; got != test.matches {
			t.Errorf("%s: %q for %s: %t, want %t", test.reason, test.entry, test.repository, got, test.matches)
		}
	}
}

// TestTheMostSpecificEntryWins, whatever the order in the file.
func TestTheMostSpecificEntryWins(t *testing.T) {
	file, err := keychain.ParseFile(config(
		"*.example glob:x", "*.example/team/deep globpath:x", "registry.example host:x", "registry.example/team team:x", "registry.example/team/app app:x",
	))
	if err != nil {
		t.Fatal(err)
	}
	for repository, want := range map[string]string{
		"registry.example/team/app":    "app",
		"registry.example/team/app/ui": "app",
		"registry.example/team/x":      "team",
		"registry.example/other":       "host",
		"registry.example/team/deep/x": "team", // a host that is written out goes first
		"eu.example/team/deep/x":       "globpath",
		"eu.example/team":              "glob",
		"example.test/team":            "",
	} {
		if got := userFor(t, file, repository); got != want {
			t.Errorf("%s: %q, want %q", repository, got, want)
		}
	}
}

// TestSecretsAreTriedInOrder, as for the kubelet: the most specific entry first,
// and the next when one is refused.
func TestSecretsAreTriedInOrder(t *testing.T) {
	for _, test := range []struct {
		reason  string
		secrets []string
		want    []string // the users that the registry saw
		refused bool
	}{
		{reason: "the first one does", secrets: []string{"good", "wide"}, want: []string{"user"}},
		{reason: "the second one does", secrets: []string{"wide", "good"}, want: []string{"wide", "user"}},
		{reason: "the third one does", secrets: []string{"wide", "wide2", "good"}, want: []string{"wide", "wide2", "user"}},
		{reason: "the longer path goes first", secrets: []string{"glob", "wide", "narrow", "good"}, want: []string{"narrow", "wide", "user"}},
		{reason: "a wildcard goes last", secrets: []string{"glob", "wide"}, want: []string{"wide", "glob"}, refused: true},
		{reason: "a wildcard stays last", secrets: []string{"wide", "glob"}, want: []string{"wide", "glob"}, refused: true},
		{reason: "of one Secret's entries, the one for the repository", secrets: []string{"both"}, want: []string{"user"}},
		{reason: "another repository's is left alone", secrets: []string{"other", "wide"}, want: []string{"wide"}, refused: true},
		{reason: "a wildcard goes last, of too many, too", secrets: append([]string{"glob", "good"}, slices.Repeat([]string{"missing"}, 19)...), want: []string{"user"}},
		{reason: "the same credential is tried once", secrets: []string{"wide", "again"}, want: []string{"wide"}, refused: true},
		{reason: "of one Secret's entries, the next one where the narrower is refused", secrets: []string{"nested"}, want: []string{"narrow", "user"}},
		{reason: "the wildcard of one Secret, after the host", secrets: []string{"wildcard"}, want: []string{"wide", "user"}},
		{reason: "two entries for one host, one of them with a scheme", secrets: []string{"scheme"}, want: []string{"wide", "user"}},
		{reason: "a version of the protocol is no path", secrets: []string{"version"}, want: []string{"wide", "user"}},
		{reason: "entries of several Secrets, the narrowest of all first", secrets: []string{"wide2", "nested"}, want: []string{"narrow", "wide2", "user"}},
		{reason: "all entries are refused", secrets: []string{"refused"}, want: []string{"narrow", "wide", "glob"}, refused: true},
		{reason: "one Secret twice", secrets: []string{"refused", "refused"}, want: []string{"narrow", "wide", "glob"}, refused: true},
		{reason: "one credential in several entries is tried once", secrets: []string{"same"}, want: []string{"wide"}, refused: true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			server := start(t, registrytest.Basic)
			host := server.Host()
			c := &cluster{secrets: map[string]secret{
				"team/good": login(host + " user:" + password), "team/wide": login(host + " wide:x"), "team/wide2": login(host + " wide2:x"),
				"team/again": login("http://" + host + " wide:x"), "team/narrow": login(host + "/team narrow:x"),
				"team/both":     login(host+"/team/other other:x", host+" user:"+password),
				"team/nested":   login(host+"/team narrow:x", host+" user:"+password),
				"team/wildcard": login(host+" wide:x", strings.Replace(host, "127", "1*", 1)+" user:"+password),
				"team/scheme":   login(host+" wide:x", "https://"+host+" user:"+password),
				"team/version":  login(host+" wide:x", "https://"+host+"/v2/ user:"+password),
				"team/refused":  login(host+"/team narrow:x", host+" wide:x", strings.Replace(host, "127", "1*", 1)+" glob:x", host+"/other other:x"),
				"team/same":     login(host+"/team wide:x", host+" wide:x", "http://"+host+" wide:x"),
				"team/other":    login(host + "/other other:x"), "team/glob": login(strings.Replace(host, "127", "1*", 1) + " glob:x"),
			}}
			k := newKeychain(t, c, nil)
			_, err := resolve(t, k, host, keychain.Request{Namespace: "team", PullSecrets: test.secrets})
			if (image.KindOf(err) == image.Refused) != test.refused || (err != nil) != test.refused {
				t.Fatal(err)
			}
			var users []string
			for _, q := range server.Requests() {
				basic, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(q.Header.Get("Authorization"), "Basic "))
				if user, _, ok := strings.Cut(string(basic), ":"); ok {
					users = append(users, user)
				}
			}
			if !slices.Equal(users, test.want) {
				t.Errorf("the registry saw %v, want %v", users, test.want)
			}
			for _, name := range test.secrets[:1] {
				if err != nil && name != "other" && !strings.Contains(err.Error(), `imagePullSecret "`+name+`"`) {
					t.Errorf("the message does not name %s: %v", name, err)
				}
			}
		})
	}
}

func TestParseFile(t *testing.T) {
	many := map[string]any{}
	for i := range 1001 {
		many[strings.Repeat("a", i+1)+".example"] = map[string]string{"auth": "dTpw"}
	}
	tooMany, err := json.Marshal(map[string]any{"auths": many})
	if err != nil {
		t.Fatal(err)
	}
	delete(many, "a.example")
	justEnough, err := json.Marshal(map[string]any{"auths": many})
	if err != nil {
		t.Fatal(err)
	}
	const one = `{"auths":{"registry.example":{`
	for _, test := range []struct {
		reason, content string
		user            string // "" means that there is none
		says            string // "" means that it is read
	}{
		{reason: "user and password", content: one + `"username":"u","password":"p"}}}`, user: "u"},
		{reason: "both in one field", content: one + `"auth":"dTpw"}}}`, user: "u"},
		{reason: "with padding", content: one + `"auth":"dXNlcjpwdw=="}}}`, user: "user"},
		{reason: "without the padding", content: one + `"auth":"dXNlcjpwdw"}}}`, user: "user"},
		{reason: "one field goes before two", content: one + `"username":"other","auth":"dTpw"}}}`, user: "u"},
		{reason: "no entries", content: `{}`},
		{reason: "an empty entry, with its credential in a store", content: `{"auths":{"registry.example":{}},"credsStore":"evil","credHelpers":{"registry.example":"evil"}}`},
		{
			reason:  "an empty entry leaves the repository to the next one",
			content: `{"auths":{"registry.example/app":{},"registry.example":{"auth":"dTpw"}}}`, user: "u",
		},
		{reason: "no JSON", content: `auths`, says: "no readable"},
		{reason: "another form", content: `{"auths":[]}`, says: "no readable"},
		{reason: "two documents", content: `{}{}`, says: "no readable"},
		{reason: "nothing", content: ``, says: "no readable"},
		{reason: "no base64", content: one + `"auth":"hunter2!"}}}`, says: `"auth" is not base64`},
		{reason: "no colon", content: one + `"auth":"aHVudGVyMg=="}}}`, says: "not user:password"},
		{reason: "as much as a Secret holds", content: `{"auths":{}}` + strings.Repeat(" ", 1<<20-len(`{"auths":{}}`))},
		{reason: "more than a Secret holds", content: `{"auths":{}}` + strings.Repeat(" ", 1<<20), says: "more than 1048576 bytes"},
		{reason: "as many hosts as are read", content: string(justEnough)},
		{reason: "more hosts than allowed", content: string(tooMany), says: "more than 1000 hosts"},
	} {
		file, err := keychain.ParseFile([]byte(test.content))
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.reason, err, test.says)
			continue
		}
		if err != nil {
			if strings.Contains(err.Error(), "hunter") {
				t.Errorf("%s: the message holds a password: %v", test.reason, err)
			}
			continue
		}
		if got := userFor(t, file, "registry.example/app"); got != test.user {
			t.Errorf("%s: user %q, want %q", test.reason, got, test.user)
		}
	}
}

func TestParseSecret(t *testing.T) {
	legacy := []byte(`{"registry.example":{"auth":"dTpw"}}`)
	modern := []byte(`{"auths":{"registry.example":{"auth":"dTpw"}}}`)
	for _, test := range []struct {
		reason, kind, key string
		content           []byte
		user              string
		says              string
	}{
		{reason: "the type of today", kind: kindConfig, key: ".dockerconfigjson", content: modern, user: "u"},
		{reason: "the type of old", kind: kindLegacy, key: ".dockercfg", content: legacy, user: "u"},
		{reason: "the old form in the new type", kind: kindConfig, key: ".dockerconfigjson", content: legacy},
		{reason: "another type", kind: "Opaque", key: ".dockerconfigjson", content: modern, says: "of type"},
		{reason: "a type of a readable length", kind: strings.Repeat("x", 100), says: `"` + strings.Repeat("x", 100) + `",`},
		{reason: "a type that is a book", kind: strings.Repeat("x", 101), says: `"` + strings.Repeat("x", 100) + `...",`},
		{reason: "the type of old, no JSON", kind: kindLegacy, key: ".dockercfg", content: []byte("registry.example"), says: "no readable"},
		{reason: "no content", kind: kindConfig, key: ".dockerconfigjson", says: "has no"},
	} {
		file, err := keychain.ParseSecret(test.kind, map[string][]byte{test.key: test.content})
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.reason, err)
		} else if err == nil && userFor(t, file, "registry.example/app") != test.user {
			t.Errorf("%s: want the user %q", test.reason, test.user)
		}
	}
}

// FuzzParseFile: reading a Secret ends, with any content, and a credential for one
// host is in an entry that can match this host.
func FuzzParseFile(f *testing.F) {
	f.Add([]byte(`{"auths":{"registry.example":{"auth":"dTpw"}}}`))
	f.Add([]byte(`{"auths":{"*.example/team":{"username":"u","password":"p"}}}`))
	f.Add([]byte(`{"auths":{"https://[::1]:5000/v2/":{"identitytoken":"t"}}}`))
	f.Add([]byte(`{"auths":{"[a-":{"auth":"OjpwOg"},"\\":{"auth":"Og"}}}`))
	f.Add([]byte(`{"auths":{"":{"auth":"dTpw"},"/":{"auth":"dTpw"}}}`))
	repository := registry.Resource(image.MustParse("registry.example/team/app").Repository())
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, kind := range []string{kindConfig, kindLegacy} {
			file, err := keychain.ParseSecret(kind, map[string][]byte{".dockerconfigjson": content, ".dockercfg": content})
			if err != nil {
				continue
			}
			found, err := file.Resolve(repository)
			if err != nil {
				t.Fatal(err)
			}
			if found == authn.Anonymous {
				continue
			}
			plausible := strings.Contains(strings.ToLower(string(content)), "example") || strings.ContainsAny(string(content), `*?[\`)
			if !plausible {
				t.Errorf("%q has a credential for registry.example", content)
			}
		}
	})
}
