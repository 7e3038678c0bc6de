package verify_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

func expression(t testing.TB, pattern string) verify.Matcher {
	t.Helper()
	m, err := verify.Expression(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestMatcher(t *testing.T) {
	tests := []struct {
		reason  string
		matcher verify.Matcher
		text    string
		want    bool
	}{
		{"exact", verify.Exactly("a"), "a", true},
		{"exact is case sensitive", verify.Exactly("a"), "A", false},
		{"exact takes no wildcard", verify.Exactly("*"), "a", false},
		{"exact takes its own text", verify.Exactly("*"), "*", true},
		{"wildcard", verify.Wildcard("https://a/*"), "https://a/b/c", true},
		{"wildcard over the whole text", verify.Wildcard("a*"), "ba", false},
		{"wildcard of one character", verify.Wildcard("a?"), "ab", true},
		{"wildcard of exactly one character", verify.Wildcard("a?"), "a", false},
		{"wildcard spans lines", verify.Wildcard("a*c"), "a\nc", true},
		{"wildcard quotes the rest", verify.Wildcard("a.c*"), "abcd", false},
		{"wildcard ends at the end", verify.Wildcard("*a"), "a\n", false},
		{"expression", expression(t, "a.c"), "abc", true},
		{"expression is anchored at the start", expression(t, "a.c"), "xabc", false},
		{"expression is anchored at the end", expression(t, "a.c"), "abcx", false},
		{"expression with alternatives is anchored as a whole", expression(t, "a|b"), "ax", false},
		{"expression with anchors of its own", expression(t, "^a$"), "a", true},
		{"expression, last line break", expression(t, "a"), "a\n", false},
		{"expression, multi-line mode changes no anchor", expression(t, "(?m)^a$"), "a\nb", false},
		{"everything but nothing", verify.Wildcard("*"), "", false},
		{"the zero matcher", verify.Matcher{}, "a", false},
		{"the zero matcher and nothing", verify.Matcher{}, "", false},
	}
	for _, test := range tests {
		if got := test.matcher.Match(test.text); got != test.want {
			t.Errorf("%s: %s on %q is %t, want %t", test.reason, test.matcher, test.text, got, test.want)
		}
	}
	for _, pattern := range []string{"", "(", "a)|(b", "[", `\A)(?:`} {
		if _, err := verify.Expression(pattern); err == nil {
			t.Errorf("expression %q was accepted", pattern)
		}
	}
	if !(verify.Matcher{}).IsZero() || !verify.Exactly("").IsZero() || verify.Exactly("a").IsZero() {
		t.Error("IsZero is wrong about what matches nothing")
	}
}

func FuzzExpression(f *testing.F) {
	f.Add("a|b", "ab")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		m, err := verify.Expression(pattern)
		if err != nil {
			return
		}
		// What matches a part matches the whole with `.*` around it, and so does
		// every match of the whole.
		if m.Match(text) {
			around, err := verify.Expression("(?s).*(?:" + pattern + ").*")
			if err == nil && !around.Match(text) {
				t.Errorf("%q matches %q as a whole and not as a part", pattern, text)
			}
		}
		verify.Wildcard(pattern).Match(text)
	})
}

func TestIdentity(t *testing.T) {
	identity := verify.Identity{Issuer: verify.Exactly("issuer"), Subject: verify.Wildcard("a*")}
	tests := []struct {
		reason, issuer string
		subjects       []string
		want           bool
	}{
		{"both", "issuer", []string{"ab"}, true},
		{"one of several subjects", "issuer", []string{"b", "ab"}, true},
		{"another issuer", "other", []string{"ab"}, false},
		{"another subject", "issuer", []string{"b"}, false},
		{"no subject", "issuer", nil, false},
		{"an empty subject", "issuer", []string{""}, false},
		{"no issuer", "", []string{"ab"}, false},
	}
	for _, test := range tests {
		if got := identity.Match(test.issuer, test.subjects); got != test.want {
			t.Errorf("%s: %t, want %t", test.reason, got, test.want)
		}
	}
}

func keyless(identities ...verify.Identity) *verify.Keyless {
	return &verify.Keyless{Identities: identities}
}

func TestValidate(t *testing.T) {
	key := &verify.Key{PEM: []byte("key")}
	both := verify.Identity{Issuer: verify.Exactly("i"), Subject: verify.Exactly("s")}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		reason    string
		authority verify.Authority
		want      string // part of the refusal; empty means valid
	}{
		{"a key", verify.Authority{Key: key}, ""},
		{"a reference", verify.Authority{Key: &verify.Key{Ref: "k8s://a/b"}}, ""},
		{"keyless", verify.Authority{Keyless: keyless(both)}, ""},
		{"a chain", verify.Authority{Certificate: &verify.Certificate{Chain: []byte("c")}}, ""},
		{"a certificate alone", verify.Authority{Certificate: &verify.Certificate{Leaf: []byte("c")}}, ""},
		{"notation", verify.Authority{Notation: &verify.Notation{CA: []byte("c")}}, ""},
		{"notation by a signing authority", verify.Authority{Notation: &verify.Notation{SigningAuthority: []byte("c")}}, ""},
		{"nothing", verify.Authority{}, "exactly one"},
		{"two", verify.Authority{Key: key, Keyless: keyless(both)}, "exactly one"},
		{"an empty key", verify.Authority{Key: &verify.Key{}}, "empty"},
		{"keyless for everybody", verify.Authority{Keyless: keyless()}, "everybody"},
		{"an identity without issuer", verify.Authority{Keyless: keyless(verify.Identity{Subject: verify.Exactly("s")})}, "identity 0"},
		{"an identity without subject", verify.Authority{Keyless: keyless(both, verify.Identity{Issuer: verify.Exactly("i")})}, "identity 1"},
		{"no certificate", verify.Authority{Certificate: &verify.Certificate{}}, "certificate or a chain"},
		{"notation without stores", verify.Authority{Notation: &verify.Notation{TSA: []byte("c")}}, "signing authority"},
		{"bounds", verify.Authority{Key: key, NotBefore: day, NotAfter: day.Add(1)}, ""},
		{"an open end", verify.Authority{Key: key, NotBefore: day}, ""},
		{"an open start", verify.Authority{Key: key, NotAfter: day}, ""},
		{"bounds the wrong way round", verify.Authority{Key: key, NotBefore: day, NotAfter: day}, "not before"},
	}
	for _, test := range tests {
		test.authority.Name = "release"
		err := test.authority.Validate()
		switch {
		case test.want == "" && err != nil:
			t.Errorf("%s: refused: %v", test.reason, err)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "release")):
			t.Errorf("%s: got %v, want a refusal that contains the authority and %q", test.reason, err, test.want)
		}
	}
}

// TestHash: every term changes the hash, and other fields do not.
func TestHash(t *testing.T) {
	base := func() verify.Authority {
		return verify.Authority{
			Name:        "a",
			Key:         &verify.Key{Ref: "awskms:///k", PEM: []byte("key"), Hash: "sha256"},
			Annotations: map[string]string{"a": "1", "b": "2"},
		}
	}
	identity := func(m verify.Matcher) verify.Authority {
		return verify.Authority{Keyless: keyless(verify.Identity{Issuer: verify.Exactly("i"), Subject: m})}
	}
	hash := func(a verify.Authority) string {
		t.Helper()
		h, err := a.Hash()
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	day := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		reason string
		change func(*verify.Authority)
		equal  bool
	}{
		{"nothing", func(*verify.Authority) {}, true},
		{"another name", func(a *verify.Authority) { a.Name = "b" }, true},
		{"another reference to the same key", func(a *verify.Authority) { a.Key.Ref = "k8s://a/b" }, true},
		{"another key behind the same reference", func(a *verify.Authority) { a.Key.PEM = []byte("rotated") }, false},
		{"another digest algorithm", func(a *verify.Authority) { a.Key.Hash = "sha512" }, false},
		{"another annotation", func(a *verify.Authority) { a.Annotations["b"] = "3" }, false},
		{"formats", func(a *verify.Authority) { a.Formats = []attest.Format{attest.Bundle} }, false},
		{"the log", func(a *verify.Authority) { a.Log.Ignore = true }, false},
		{"log keys", func(a *verify.Authority) { a.Log.Keys = []byte("k") }, false},
		{"logs of another root", func(a *verify.Authority) { a.Log.Root = []byte("r") }, false},
		{"timestamp authorities of another root", func(a *verify.Authority) { a.Timestamp.Root = []byte("r") }, false},
		{"log URL", func(a *verify.Authority) { a.Log.URL = "u" }, false},
		{"timestamps", func(a *verify.Authority) { a.Timestamp.Required = true }, false},
		{"timestamp chain", func(a *verify.Authority) { a.Timestamp.Chain = []byte("c") }, false},
		{"trusted root", func(a *verify.Authority) { a.TrustedRoot = []byte("r") }, false},
		{"not before", func(a *verify.Authority) { a.NotBefore = day }, false},
		{"not after", func(a *verify.Authority) { a.NotAfter = day }, false},
		{"greatest age", func(a *verify.Authority) { a.MaxAge = time.Hour }, false},
	}
	want := hash(base())
	for _, test := range tests {
		changed := base()
		test.change(&changed)
		if got := hash(changed) == want; got != test.equal {
			t.Errorf("%s: equal is %t, want %t", test.reason, got, test.equal)
		}
	}
	if hash(identity(verify.Exactly("a.c"))) == hash(identity(expression(t, "a.c"))) {
		t.Error("a text and an expression of the same letters have one hash")
	}
	keylessOnly, certificate := verify.Authority{Keyless: &verify.Keyless{CT: verify.CT{Ignore: true}}}, verify.Authority{Certificate: &verify.Certificate{CT: verify.CT{Ignore: true}}}
	if hash(keylessOnly) == hash(certificate) {
		t.Error("two kinds of authority have one hash")
	}
	if _, err := (verify.Authority{Name: "a", Key: &verify.Key{Ref: "awskms:///k"}}).Hash(); err == nil {
		t.Error("an unresolved key has a hash")
	}
}

func TestKind(t *testing.T) {
	for want, authority := range map[string]verify.Authority{
		"key": {Key: &verify.Key{}}, "keyless": {Keyless: &verify.Keyless{}},
		"certificate": {Certificate: &verify.Certificate{}}, "notation": {Notation: &verify.Notation{}}, "": {},
	} {
		if got := authority.Kind(); got != want {
			t.Errorf("kind %q, want %q", got, want)
		}
	}
}

func TestAdmits(t *testing.T) {
	from, until := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		reason             string
		notBefore, noAfter time.Time
		at                 time.Time
		want               verify.Code
	}{
		{"no bounds, no time", time.Time{}, time.Time{}, time.Time{}, ""},
		{"no bounds", time.Time{}, time.Time{}, from, ""},
		{"at the start", from, until, from, ""},
		{"at the end", from, until, until, ""},
		{"before", from, until, from.Add(-time.Second), verify.OutsideValidity},
		{"after", from, until, until.Add(time.Second), verify.OutsideValidity},
		{"open end", from, time.Time{}, until.AddDate(9, 0, 0), ""},
		{"open end, before", from, time.Time{}, from.Add(-1), verify.OutsideValidity},
		{"open start, after", time.Time{}, until, until.Add(1), verify.OutsideValidity},
		{"no time", from, time.Time{}, time.Time{}, verify.NoTimestamp},
	}
	for _, test := range tests {
		authority := verify.Authority{Name: "a", NotBefore: test.notBefore, NotAfter: test.noAfter}
		rejection := authority.Admits(test.at, nil)
		if rejection == nil && test.want != "" || rejection != nil && rejection.Code != test.want {
			t.Errorf("%s: got %v, want %q", test.reason, rejection, test.want)
		}
	}
}

// TestAdmitsRetired: a signature after the retirement of its key is not accepted, for any
// certificate.
func TestAdmitsRetired(t *testing.T) {
	lost, kept := &x509.Certificate{PublicKey: ed25519.PublicKey(make([]byte, 32))}, &x509.Certificate{PublicKey: ed25519.PublicKey(bytes.Repeat([]byte{1}, 32))}
	strange := &x509.Certificate{PublicKey: "of a kind that Go cannot write", RawSubjectPublicKeyInfo: []byte("as it was written")}
	end := time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)
	written := sha256.Sum256(strange.RawSubjectPublicKeyInfo)
	all := map[string]time.Time{verify.Fingerprint(lost.PublicKey, nil): end, hex.EncodeToString(written[:]): end}
	for _, row := range []struct {
		reason string
		signer *x509.Certificate
		own    time.Time
		at     time.Time
		want   verify.Code
	}{
		{"at the end", lost, time.Time{}, end, ""},
		{"after the end", lost, time.Time{}, end.Add(1), verify.OutsideValidity},
		{"at an unknown time", lost, time.Time{}, time.Time{}, verify.NoTimestamp},
		{"an authority that ends earlier by itself", lost, end.Add(-1), end, verify.OutsideValidity},
		{"an authority that ends later by itself", lost, end.Add(2), end.Add(1), verify.OutsideValidity},
		{"another key", kept, time.Time{}, end.Add(1), ""},
		{"another key, at an unknown time", kept, time.Time{}, time.Time{}, ""},
		{"a key", nil, time.Time{}, time.Time{}, ""},
		{"a key that Go cannot write", strange, time.Time{}, end.Add(1), verify.OutsideValidity},
	} {
		rejection := verify.Authority{Name: "a", NotAfter: row.own, Retired: all}.Admits(row.at, row.signer)
		if rejection == nil && row.want != "" || rejection != nil && rejection.Code != row.want {
			t.Errorf("%s: got %v, want %q", row.reason, rejection, row.want)
		}
	}
}

func TestMissingAnnotation(t *testing.T) {
	signed := map[string]string{"a": "1", "b": "2", "empty": ""}
	tests := []struct {
		reason string
		wanted map[string]string
		want   string // the rejection's text; empty means met
	}{
		{"nothing is wanted", nil, ""},
		{"all are there", map[string]string{"a": "1", "b": "2"}, ""},
		{"an empty value", map[string]string{"empty": ""}, ""},
		{"another value", map[string]string{"a": "2"}, "wrong-annotation: expected a=2, found a=1"},
		{"a missing one", map[string]string{"c": ""}, "wrong-annotation: expected c=, found nothing"},
		{"the first of two", map[string]string{"z": "1", "c": "1"}, "wrong-annotation: expected c=1, found nothing"},
	}
	for _, test := range tests {
		rejection := verify.MissingAnnotation(test.wanted, signed)
		if rejection == nil && test.want != "" || rejection != nil && rejection.Error() != test.want {
			t.Errorf("%s: got %v, want %q", test.reason, rejection, test.want)
		}
	}
}

func TestSubjectAnnotations(t *testing.T) {
	digest, other := image.DigestOf([]byte("a")), image.DigestOf([]byte("b"))
	statement := attest.Statement{Subjects: []attest.Subject{
		{Digest: map[string]string{"sha256": other.Hex()}, Annotations: map[string]any{"env": "other"}},
		{Digest: map[string]string{"sha256": digest.Hex()}, Annotations: map[string]any{"env": "prod", "n": 1.0}},
	}}
	got := verify.SubjectAnnotations(statement, digest)
	if len(got) != 1 || got["env"] != "prod" {
		t.Errorf("got %v, want the texts of the subject that is the digest", got)
	}
	if got := verify.SubjectAnnotations(statement, image.DigestOf(nil)); got != nil {
		t.Errorf("got %v for a digest that is no subject", got)
	}
}

func TestRejection(t *testing.T) {
	cause := errors.New("cause")
	tests := []struct {
		rejection verify.Rejection
		want      string
	}{
		{verify.Rejection{Code: verify.BadSignature}, "bad-signature"},
		{verify.Rejection{Code: verify.WrongKey, Expected: "a", Found: "b"}, "wrong-key: expected a, found b"},
		{verify.Rejection{Code: verify.NoLogEntry, Expected: "a"}, "no-log-entry: expected a, found nothing"},
		{verify.Rejection{Code: verify.WrongKey, Found: "b"}, "wrong-key: expected nothing, found b"},
		{verify.Rejection{Code: verify.Malformed, Err: cause}, "malformed: cause"},
	}
	for _, test := range tests {
		if got := test.rejection.Error(); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
	if !errors.Is(&verify.Rejection{Err: cause}, cause) {
		t.Error("a rejection hides its cause")
	}
}

func TestSigner(t *testing.T) {
	tests := map[string]verify.Signer{
		"s (i)":                {Subject: "s", Issuer: "i"},
		"s":                    {Subject: "s"},
		"key 0123456789abcdef": {KeyFingerprint: "0123456789abcdef0123"},
		"key 01":               {KeyFingerprint: "01"},
		"key 02":               {KeyFingerprint: "02", Issuer: "i"},
	}
	for want, signer := range tests {
		if got := signer.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestLevel(t *testing.T) {
	if (verify.Level{}) != verify.Strict() {
		t.Error("the zero level is not strict")
	}
	for name, test := range map[string]struct {
		level verify.Level
		want  string
	}{
		"strict":     {verify.Strict(), `{}`},
		"permissive": {verify.Permissive(), `{"authenticTimestamp":"log","expiry":"log","revocation":"log"}`},
		"audit":      {verify.Audit(), `{"authenticity":"log","authenticTimestamp":"log","expiry":"log","revocation":"log"}`},
	} {
		got, err := json.Marshal(test.level)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %s, %v; want %s", name, got, err, test.want)
		}
	}
}

// says is a verifier that returns its name; only the dispatch is tested.
type says string

func (s says) Verify(context.Context, image.Pinned, attest.Evidence, verify.Authority) (verify.Fact, error) {
	return verify.Fact{Notes: []string{string(s)}}, nil
}

func TestByFormat(t *testing.T) {
	verifiers := verify.ByFormat{attest.Bundle: says("bundle"), attest.Cosign: says("cosign")}
	fact, err := verifiers.Verify(t.Context(), image.Pinned{}, attest.Evidence{Format: attest.Cosign}, verify.Authority{})
	if err != nil || fact.Notes[0] != "cosign" {
		t.Errorf("cosign's evidence went to %v, %v", fact.Notes, err)
	}
	_, err = verifiers.Verify(t.Context(), image.Pinned{}, attest.Evidence{Format: attest.Notation, Origin: attest.Origin{Via: "v"}}, verify.Authority{Name: "a"})
	rejection, ok := errors.AsType[*verify.Rejection](err)
	if !ok || rejection.Code != verify.WrongFormat || rejection.Authority != "a" || rejection.Origin.Via != "v" {
		t.Errorf("evidence without a verifier: got %v, want a rejection", err)
	}
}

// The hash of an authority covers its meaning: a rotated key makes another hash.
func Example() {
	authority := verify.Authority{Name: "release", Key: &verify.Key{Ref: "awskms:///alias/release", PEM: []byte("first version")}}
	before, _ := authority.Hash()
	authority.Key.PEM = []byte("second version")
	after, _ := authority.Hash()
	fmt.Println(authority.Kind(), before == after)
	// Output: key false
}
