package override_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/override"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

var hex64 = strings.Repeat("ab", 32)

// written is a document with the given spec and metadata.
func written(spec, metadata string) string {
	return "apiVersion: quaymaster.dev/v1alpha1\nkind: ImageOverride\nmetadata: {name: test" + metadata + "}\nspec: {" + spec + "}\n"
}

const (
	good  = `effect: Deny, reason: INC-7, expires: "2027-01-31T00:00:00Z"`
	allow = `effect: Allow, reason: INC-7, expires: "2027-01-31T00:00:00Z"`
)

func compile(text string) (*policy.Override, error) {
	return override.Overrides{}.Compile([]byte(text), "test.yaml")
}

func TestCompile(t *testing.T) {
	o, err := compile(written(good+`, namespaces: [team-*, prod], match: {digests: ["sha256:`+hex64+`"], repositories: [nginx, GHCR.io/evil/*, "*", "index.docker.io/*", "*/evil"]}`, ""))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"docker.io/library/nginx", "ghcr.io/evil/*", "*", "docker.io/*", "*/evil"}
	if fmt.Sprint(o.Repositories) != fmt.Sprint(want) {
		t.Errorf("repositories %q, want %q", o.Repositories, want)
	}
	end := time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC)
	if o.Name != "test" || o.Source != "test.yaml" || o.Hash == "" || o.Effect != policy.OverrideDeny || o.Reason != "INC-7" ||
		!o.Expires.Equal(end) || len(o.Namespaces) != 2 || o.Digests[0].String() != "sha256:"+hex64 || o.Broken != nil {
		t.Errorf("%+v", o)
	}
	plain, err := compile(strings.Replace(written(good+`, match: {repositories: [a.example/b]}`, ""), `"2027-01-31T00:00:00Z"`, "2027-01-31T01:00:00+01:00", 1))
	if err != nil || !plain.Expires.Equal(end) {
		t.Errorf("a time without quotes, in a zone: %v, %v", plain, err)
	}
}

func TestCompileRefuses(t *testing.T) {
	const match = `, match: {repositories: [a.example/b]}`
	repository := func(text string) string { return good + `, match: {repositories: ["` + text + `"]}` }
	by := func(head, signer string) string { return head + `, match: {signers: [{` + signer + `}]}` }
	key := `key: "` + strings.ReplaceAll(string(newSigner(t).PublicPEM()), "\n", `\n`) + `"`
	for _, c := range []struct{ reason, spec, metadata, path string }{
		{"no effect", strings.Replace(good, "effect: Deny, ", "", 1) + match, "", "spec.effect"},
		{"another effect", strings.Replace(good, "Deny", "deny", 1) + match, "", "spec.effect"},
		{"no reason", strings.Replace(good, "INC-7", `"  "`, 1) + match, "", "spec.reason"},
		{"a reason of two lines", strings.Replace(good, "INC-7", `"a\nb"`, 1) + match, "", "spec.reason"},
		{"a reason that has no end", strings.Replace(good, "INC-7", strings.Repeat("a", 1025), 1) + match, "", "spec.reason"},
		{"no end", `effect: Deny, reason: INC-7` + match, "", "spec.expires"},
		{"an end in another spelling", strings.Replace(good, "2027-01-31T00:00:00Z", "2027-01-31", 1) + match, "", "spec.expires"},
		{"an end before its creation", good + match, `, creationTimestamp: "2027-01-31T00:00:00Z"`, "spec.expires"},
		{"an Allow for a year", allow + match, `, creationTimestamp: "2026-01-31T00:00:00Z"`, "spec.expires"},
		{"nothing matched", good, "", "spec.match"},
		{"an empty match", good + `, match: {}`, "", "spec.match"},
		{"an empty list", good + `, match: {digests: []}`, "", "spec.match"},
		{"an unknown field", good + match + `, images: [a]`, "", "spec.images"},
		{"an unknown field below", good + `, match: {repository: a}`, "", "spec.match.repository"},
		{"a field in another case", good + `, match: {Repositories: [a.example/b]}`, "", "spec.match.Repositories"},
		{"text for a list", good + `, match: {digests: a}`, "", "spec.match.digests"},
		{"no namespaces", good + match + `, namespaces: []`, "", "spec.namespaces"},
		{"an impossible namespace", good + match + `, namespaces: [Prod]`, "", "spec.namespaces[0]"},
		{"a digest with a name", good + `, match: {digests: ["a@sha256:` + hex64 + `"]}`, "", "spec.match.digests[0]"},
		{"a short digest", good + `, match: {digests: ["sha256:abc"]}`, "", "spec.match.digests[0]"},
		{"too many entries", good + `, match: {digests: [` + strings.Repeat(`"sha256:`+hex64+`", `, 201) + `]}`, "", "spec.match.digests"},
		{"an empty repository", repository(""), "", "spec.match.repositories[0]"},
		{"a tag", repository("nginx:1.27"), "", "spec.match.repositories[0]"},
		{"a tag below a pattern", repository("a.example/*:v1"), "", "spec.match.repositories[0]"},
		{"a tag everywhere", repository("*:latest"), "", "spec.match.repositories[0]"},
		{"a digest", repository("a.example/b@sha256:" + hex64), "", "spec.match.repositories[0]"},
		{"everything in disguise", repository("*/*"), "", "spec.match.repositories[0]"},
		{"everything in another disguise", repository("**"), "", "spec.match.repositories[0]"},
		{"a short pattern", repository("nginx*"), "", "spec.match.repositories[0]"},
		{"a short pattern with a path", repository("library/*"), "", "spec.match.repositories[0]"},
		{"upper case", repository("a.example/B*"), "", "spec.match.repositories[0]"},
		{"a scheme", repository("https://a.example/*"), "", "spec.match.repositories[0]"},
		{"a registry alone", repository("a.example/"), "", "spec.match.repositories[0]"},
		{"nobody", by(good, ""), "", "spec.match.signers[0]"},
		{"a key and an identity", by(good, key+`, issuer: a, subject: b`), "", "spec.match.signers[0]"},
		{"a key twice", by(good, key+`, keyFingerprint: `+hex64), "", "spec.match.signers[0]"},
		{"no key", by(good, `key: abc`), "", "spec.match.signers[0].key"},
		{"a fingerprint that is none", by(good, `keyFingerprint: abc`), "", "spec.match.signers[0].keyFingerprint"},
		{"a fingerprint to allow", by(allow, `keyFingerprint: `+hex64), "", "spec.match.signers[0].keyFingerprint"},
		{"no subject", by(good, `issuer: a`), "", "spec.match.signers[0].subject"},
		{"no issuer", by(good, `subject: a`), "", "spec.match.signers[0].issuer"},
		{"a subject twice", by(good, `issuer: a, subject: b, subjectRegExp: b`), "", "spec.match.signers[0].subject"},
		{"an expression that is none", by(good, `issuer: a, subjectRegExp: "("`), "", "spec.match.signers[0].subjectRegExp"},
		{"an expression that takes much memory", by(good, `issuer: a, subjectRegExp: "`+strings.Repeat("a{1000}", 4)+`"`), "", "spec.match.signers[0].subjectRegExp"},
		{"any subject allowed", by(allow, `issuer: a, subjectRegExp: ".*"`), "", "spec.match.signers[0].subjectRegExp"},
		{"any address allowed", by(allow, `issuer: a, subjectRegExp: ".+@.+"`), "", "spec.match.signers[0].subjectRegExp"},
		{"any workflow anywhere allowed", by(allow, `issuer: a, subjectRegExp: "https://.*"`), "", "spec.match.signers[0].subjectRegExp"},
		{"any issuer of more than one letter allowed", by(allow, `issuerRegExp: "..+", subject: a`), "", "spec.match.signers[0].issuerRegExp"},
		{"any issuer allowed", by(allow, `issuerRegExp: ".+", subject: a`), "", "spec.match.signers[0].issuerRegExp"},
	} {
		_, err := compile(written(c.spec, c.metadata))
		field, is := errors.AsType[*override.FieldError](err)
		if !is || field.Path != c.path {
			t.Errorf("%s: %v, want it at %s", c.reason, err, c.path)
		}
	}
	for _, c := range []struct{ reason, text string }{
		{"another version", strings.Replace(written(good+match, ""), "v1alpha1", "v2", 1)},
		{"no name", strings.Replace(written(good+match, ""), "name: test", "", 1)},
		{"a key twice", written(good+`, effect: Allow`+match, "")},
		{"no object", "[]"},
		{"no YAML", "{"},
		{"nothing", ""},
		{"too much", written(good+match, "") + "# " + strings.Repeat("a", 1<<20)},
	} {
		if o, err := compile(c.text); err == nil {
			t.Errorf("%s is taken: %+v", c.reason, o)
		}
	}
	// The twins with nothing wrong.
	for _, spec := range []string{
		good + match, allow + match, by(good, key), by(allow, key), by(good, `keyFingerprint: `+strings.ToUpper(hex64)),
		by(good, `issuerRegExp: ".*", subjectRegExp: ".*"`), by(allow, `issuer: a, subjectRegExp: "https://a/.*"`), repository("*"),
	} {
		if _, err := compile(written(spec, `, creationTimestamp: "2026-12-31T00:00:00Z", managedFields: []`)); err != nil {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func newSigner(t testing.TB) *verifytest.Signer {
	t.Helper()
	signer, err := verifytest.KeySigner(verifytest.KeyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// An override that had expired when it is read is no error, and has no effect.
func TestExpired(t *testing.T) {
	o, err := compile(written(good+`, match: {repositories: ["*"]}`, `, creationTimestamp: "2027-01-30T00:00:00Z"`))
	if err != nil {
		t.Fatal(err)
	}
	none, err := set.New()
	if err != nil {
		t.Fatal(err)
	}
	set, err := none.WithOverrides(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at    time.Time
		holds bool
	}{{o.Expires.Add(-1), true}, {o.Expires, false}, {o.Expires.Add(time.Hour), false}} {
		if in := set.Overriding(&policy.Subject{Time: c.at}); (in != nil) != c.holds {
			t.Errorf("at %s it holds: %t", c.at, in != nil)
		}
	}
}

func TestSigners(t *testing.T) {
	by := func(signer string) policy.OverrideSigner {
		o, err := compile(written(good+`, match: {signers: [{`+signer+`}]}`, ""))
		if err != nil {
			t.Fatal(err)
		}
		return o.Signers[0]
	}
	identity := verify.Signer{Issuer: "https://i.example", Subject: "https://s.example/main"}
	for _, c := range []struct {
		reason string
		by     policy.OverrideSigner
		signer verify.Signer
		is     bool
	}{
		{"its key", by(`keyFingerprint: ` + hex64), verify.Signer{KeyFingerprint: hex64}, true},
		{"another key", by(`keyFingerprint: ` + hex64), verify.Signer{KeyFingerprint: strings.Repeat("cd", 32)}, false},
		{"an identity is no key", by(`keyFingerprint: ` + hex64), identity, false},
		{"its identity", by(`issuer: "https://i.example", subject: "https://s.example/main"`), identity, true},
		{"another subject", by(`issuer: "https://i.example", subject: "https://s.example"`), identity, false},
		{"another issuer", by(`issuer: "https://i.example.org", subject: "https://s.example/main"`), identity, false},
		{"an expression", by(`issuer: "https://i.example", subjectRegExp: "https://s\\.example/.*"`), identity, true},
		{"an expression for a part", by(`issuer: "https://i.example", subjectRegExp: "https://s"`), identity, false},
		{"a key is no identity", by(`issuerRegExp: ".*", subjectRegExp: ".*"`), verify.Signer{KeyFingerprint: hex64}, false},
	} {
		if c.by.Is(c.signer) != c.is {
			t.Errorf("%s: %t", c.reason, !c.is)
		}
	}
}

// The readable entries of a broken Deny apply; a broken Allow allows nothing.
func TestBroken(t *testing.T) {
	why := errors.New("broken")
	list := `, match: {digests: ["sha256:` + hex64 + `", "sha256:abc"], repositories: [a.example/b, "**"], signers: [{keyFingerprint: ` + hex64 + `}, {key: a}]}`
	for _, c := range []struct {
		reason, spec string
		holds        bool
		everywhere   bool
		ends         bool
	}{
		{"an entry is wrong", good + list, true, true, true},
		{"an unknown field", good + list + `, images: [a]`, true, true, true},
		{"the end is wrong", strings.Replace(good, "2027", "soon", 1) + list, true, true, false},
		{"the namespaces are wrong", good + list + `, namespaces: [team-a, B]`, true, true, true},
		{"the namespaces are right", good + list + `, namespaces: [team-a]`, true, false, true},
		{"no entry is right", good + `, match: {digests: [a]}`, false, false, false},
		{"no effect", strings.Replace(good, "Deny", "Refuse", 1) + list, false, false, false},
		{"an Allow", allow + list, false, false, false},
	} {
		o := override.Overrides{}.Broken([]byte(written(c.spec, "")), "test.yaml", why)
		if (o != nil) != c.holds {
			t.Errorf("%s: %+v", c.reason, o)
		}
		if o == nil {
			continue
		}
		if !errors.Is(o.Broken, why) || len(o.Digests) != 1 || len(o.Repositories) != 1 || len(o.Signers) != 1 || o.Name != "test" ||
			(len(o.Namespaces) == 0) != c.everywhere || o.Expires.IsZero() == c.ends {
			t.Errorf("%s: %+v", c.reason, o)
		}
		empty, err := set.New()
		if err == nil {
			_, err = empty.WithOverrides(o)
		}
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
	many := written(good+`, match: {repositories: [`+strings.Repeat("a.example/b, ", 200)+`a.example/last]}`, "")
	if o := (override.Overrides{}).Broken([]byte(many), "test.yaml", why); o == nil || !slices.Contains(o.Repositories, "a.example/last") {
		t.Error("of too many entries the last one does not hold")
	}
	for _, text := range []string{"", "{", "[]", strings.Repeat("a", 2<<20)} {
		if o := (override.Overrides{}).Broken([]byte(text), "test.yaml", why); o != nil {
			t.Errorf("%.10q: %+v", text, o)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add([]byte(written(good+`, namespaces: [a*], match: {digests: ["sha256:`+hex64+`"], repositories: [nginx, "*.example/a*"], signers: [{issuer: a, subjectRegExp: "b.*"}]}`, "")))
	f.Add([]byte(written(allow+`, match: {repositories: ["*"]}`, `, creationTimestamp: null`)))
	f.Add([]byte(`{"apiVersion": "quaymaster.dev/v1alpha1", "kind": "ImageOverride", "spec": {"effect": "Deny", "match": {"repositories": ["*", 1]}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := override.Overrides{}.Compile(text, "fuzz")
		if err != nil {
			o = (override.Overrides{}).Broken(text, "fuzz", err)
			if o != nil && o.Effect != policy.OverrideDeny {
				t.Errorf("a broken document has the effect %s", o.Effect)
			}
		}
		if o == nil {
			return
		}
		empty, err := set.New()
		if err != nil {
			t.Fatal(err)
		}
		active, err := empty.WithOverrides(o)
		if err != nil {
			t.Fatalf("it compiles, and is no part of a set: %v", err)
		}
		subject := &policy.Subject{Namespace: "a", Time: time.Unix(0, 0)}
		in := active.Overriding(subject)
		if in == nil {
			return
		}
		said := in.Says(o.Effect, set.Overridden{Names: []image.Ref{image.MustParse("nginx")}, Digests: o.Digests})
		if said == nil && len(o.Digests) > 0 {
			t.Error("it is in force and does not match its digest")
		}
		if said != nil {
			_ = said.Reason()
		}
	})
}

func Example() {
	o, err := override.Overrides{}.Compile([]byte(`
apiVersion: quaymaster.dev/v1alpha1
kind: ImageOverride
metadata: {name: inc-2291}
spec:
  effect: Deny
  reason: "INC-2291: the build host was broken into"
  expires: 2027-01-31T00:00:00Z
  match:
    repositories: [ghcr.io/example/payments]
`), "bad-day.yaml")
	fmt.Println(o.ID(), o.Effect, o.Repositories, err)
	_, err = override.Overrides{}.Compile([]byte(`
apiVersion: quaymaster.dev/v1alpha1
kind: ImageOverride
metadata: {name: inc-2291}
spec:
  effect: Deny
  reason: "INC-2291"
  expires: 2027-01-31T00:00:00Z
  match:
    repositories: ["ghcr.io/example/payments:v2"]
`), "bad-day.yaml")
	fmt.Println(err)
	// Output:
	// ImageOverride/inc-2291 Deny [ghcr.io/example/payments] <nil>
	// override in bad-day.yaml: spec.match.repositories[0]: "ghcr.io/example/payments:v2": want a repository without tag and digest; a tag may move, and digests have a list of their own
}

// The examples of the documentation compile.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob("../../../examples/overrides/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range append(files, "../../../docs/overrides.md") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{string(content)}
		if filepath.Ext(file) == ".md" {
			texts = nil
			for _, part := range strings.Split(string(content), "```yaml\n")[1:] {
				text, _, _ := strings.Cut(part, "```")
				texts = append(texts, text)
			}
			if len(texts) != 2 {
				t.Errorf("%s has %d examples", file, len(texts))
			}
		}
		for _, text := range texts {
			if _, err := compile(text); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}
