package override_test

import (
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/override"
)

// TestRecognises: an override is known by its group and kind, in whatever version.
func TestRecognises(t *testing.T) {
	for _, c := range []struct {
		version, kind string
		want          bool
	}{
		{"quaymaster.dev/v1alpha1", "ImageOverride", true},
		{"quaymaster.dev/v2", "ImageOverride", true},
		{"quaymaster.dev/v1alpha1", "RegistryMirror", false},
		{"kyverno.io/v1", "ImageOverride", false},
	} {
		if got := (override.Overrides{}).Recognises(c.version, c.kind); got != c.want {
			t.Errorf("%s %s: %t", c.version, c.kind, got)
		}
	}
}

// TestBounds: the last that is taken, and the first that is not.
func TestBounds(t *testing.T) {
	const match = `, match: {repositories: [a.example/b]}`
	created := func(at string) string { return `, creationTimestamp: "` + at + `"` }
	reason := func(n int) string { return strings.Replace(good, "INC-7", strings.Repeat("a", n), 1) + match }
	namespace := func(text string) string { return good + match + `, namespaces: ["` + text + `"]` }
	digests := func(n int) string {
		return good + `, match: {digests: [` + strings.Repeat(`"sha256:`+hex64+`", `, n) + `]}`
	}
	for _, c := range []struct {
		reason, spec, metadata string
		good                   bool
	}{
		{"an Allow for ninety days", allow + match, created("2026-11-02T00:00:00Z"), true},
		{"an Allow for a second more", allow + match, created("2026-11-01T23:59:59Z"), false},
		{"a Deny for years", good + match, created("2020-01-01T00:00:00Z"), true},
		{"a creation that is no time", allow + match, created("soon"), false},
		{"an end before all times", strings.Replace(good, "2027-01-31", "0001-01-01", 1) + match, "", false},
		{"as many entries as may be", digests(200), "", true},
		{"more entries", digests(201), "", false},
		{"as long a reason as may be", reason(1024), "", true},
		{"a longer reason", reason(1025), "", false},
		{"as long a namespace as may be", namespace(strings.Repeat("a", 253)), "", true},
		{"a longer namespace", namespace(strings.Repeat("a", 254)), "", false},
		{"a namespace without a name", namespace(""), "", false},
	} {
		if _, err := compile(written(c.spec, c.metadata)); (err == nil) != c.good {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
	deny := written(good+match, "")
	for size, holds := range map[int]bool{1 << 20: true, 1<<20 + 1: false} {
		text := deny + "#" + strings.Repeat("a", size-len(deny)-1)
		if _, err := compile(text); (err == nil) != holds {
			t.Errorf("%d bytes: %v", size, err)
		}
		if o := (override.Overrides{}).Broken([]byte(text), "test.yaml", errors.New("broken")); (o != nil) != holds {
			t.Errorf("%d bytes, and broken: %+v", size, o)
		}
	}
	if o, err := compile(strings.Replace(deny, "kind: ImageOverride", "kind: ImageOverrides", 1)); err == nil {
		t.Errorf("another kind: %+v", o)
	}
}

// TestRepositories: patterns that match exactly the repositories of their host and prefix
// are accepted.
func TestRepositories(t *testing.T) {
	for text, want := range map[string]bool{
		"localhost/*": true, "a.example/*": true, "a.example:5000/b*": true, "*.example/b": true,
		"a.example*": false, "a.example/*@x": false, "localhosts/*": false,
	} {
		if _, err := compile(written(good+`, match: {repositories: ["`+text+`"]}`, "")); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSignersOf: valid signers, and the signers that can be verified.
func TestSignersOf(t *testing.T) {
	key := string(newSigner(t).PublicPEM())
	block, _ := pem.Decode([]byte(key))
	named := func(kind string) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: block.Bytes}))
	}
	keyOf := func(text string) string { return `key: "` + strings.ReplaceAll(text, "\n", `\n`) + `"` }
	subject := func(expression string) string { return `issuer: a, subjectRegExp: '` + expression + `'` }
	for _, c := range []struct {
		reason, head, signer string
		good, proves         bool
	}{
		{"a key to deny", good, keyOf(key), true, false},
		{"a key to allow", allow, keyOf(key), true, true},
		{"a key, and an empty line behind it", allow, keyOf(key + "\n"), true, true},
		{"a key, and something behind it", good, keyOf(key + "x"), false, false},
		{"two keys", good, keyOf(key + key), false, false},
		{"a key under another name", good, keyOf(named("RSA PUBLIC KEY")), false, false},
		{"a key that is none", good, keyOf(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")}))), false, false},
		{"a fingerprint", good, "keyFingerprint: " + hex64, true, false},
		{"a fingerprint with one digit too many", good, "keyFingerprint: " + hex64 + "a", false, false},
		{"a fingerprint of another length", good, "keyFingerprint: " + hex64 + "ab", false, false},
		{"an identity to deny", good, subject("x.*"), true, false},
		{"an identity to allow", allow, subject("x.*"), true, true},
		{"one of two unrelated hosts", allow, subject(`https://a\.example/.*`), true, true},
		{"the other host", allow, subject(`https://b\.test/.*`), true, true},
		{"both hosts", allow, subject(`https://(a\.example|b\.test)/.*`), false, false},
		{"one of two unrelated persons", allow, subject(`.*@a\.example`), true, true},
		{"the other person", allow, subject(`.*@b\.test`), true, true},
		{"both persons", allow, subject(`.*@(a\.example|b\.test)`), false, false},
	} {
		o, err := compile(written(c.head+`, match: {signers: [{`+c.signer+`}]}`, ""))
		if (err == nil) != c.good {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if err == nil && (o.Signers[0].Authority != nil) != c.proves {
			t.Errorf("%s: it is proved by %+v", c.reason, o.Signers[0].Authority)
		}
	}
	o := override.Overrides{}.Broken([]byte(written(good+`, match: {signers: [{issuer: a, subject: b, key: 5}]}`, "")), "test.yaml", errors.New("broken"))
	if o != nil {
		t.Errorf("a signer of which one field cannot be read: %+v", o)
	}
}
