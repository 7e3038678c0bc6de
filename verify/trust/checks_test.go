package trust_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"slices"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// padded is a text of a size.
func padded(text []byte, size int) []byte {
	return append(bytes.Clone(text), bytes.Repeat([]byte("\n"), size-len(text))...)
}

func TestParseCertificates(t *testing.T) {
	ca := issue(t, "root", true, nil)
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	certified := func(bits int) []byte {
		return verifytest.Must(verifytest.CertificateOf(verifytest.LongKey(bits))).Raw
	}
	tests := []struct {
		reason string
		text   []byte
		good   bool
	}{
		{"one", pemOf(ca), true},
		{"as long as may be", padded(pemOf(ca), trust.MaxPEM), true},
		{"longer", padded(pemOf(ca), trust.MaxPEM+1), false},
		{"two, which are as many as may be", pemOf(ca, ca), true},
		{"three", pemOf(ca, ca, ca), false},
		{"a certificate under another name", block("TRUSTED CERTIFICATE", ca.certificate.Raw), false},
		{"no certificate under its name", block("CERTIFICATE", []byte("x")), false},
		{"a key of 8192 bits", block("CERTIFICATE", certified(8192)), true},
		{"one bit more", block("CERTIFICATE", certified(8193)), false},
		{"nothing", []byte("\n"), false},
	}
	for _, test := range tests {
		if list, err := trust.ParseCertificates(test.text, 2); (err == nil) != test.good || len(list) == 0 == test.good {
			t.Errorf("%s: got %d certificates, %v", test.reason, len(list), err)
		}
	}
}

// composed returns the material of an authority, by a snapshot without a root of its own.
func composed(t *testing.T, a verify.Authority) (*trust.Material, error) {
	t.Helper()
	a.Name = "a"
	return newStore(t, trust.Options{Private: trust.Private{Fulcio: newSigstore("own").CA.ChainPEM()}}).Snapshot().Material(a)
}

// TestRoots: which certificates of a text are anchors.
func TestRoots(t *testing.T) {
	ca := issue(t, "root", true, nil)
	between := issue(t, "intermediate", true, ca)
	namesake := issue(t, "root", true, ca)
	tests := []struct {
		reason string
		text   []byte
		want   []*issuer // none: refused
	}{
		{"a root", pemOf(ca), []*issuer{ca}},
		{"a root and its certificate", pemOf(between, ca), []*issuer{ca}},
		{"a root and its certificate under its own name", pemOf(namesake, ca), []*issuer{ca}},
		{"an intermediate alone is trusted as such", pemOf(between), []*issuer{between}},
		{"no certificate", []byte("x"), nil},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			material, err := composed(t, verify.Authority{Log: verify.Log{Ignore: true}, Keyless: &verify.Keyless{
				Identities: []verify.Identity{{Issuer: verify.Exactly("i"), Subject: verify.Exactly("s")}},
				Roots:      test.text, CT: verify.CT{Ignore: true},
			}})
			if (err == nil) != (test.want != nil) {
				t.Fatalf("got %v", err)
			}
			if err != nil {
				return
			}
			var got []string
			for _, authority := range material.FulcioCertificateAuthorities() {
				got = append(got, string(authority.(*root.FulcioCertificateAuthority).Root.Raw))
			}
			var want []string
			for _, anchor := range test.want {
				want = append(want, string(anchor.certificate.Raw))
			}
			if !slices.Equal(got, want) {
				t.Errorf("got %d anchors, want %d, or other ones", len(got), len(want))
			}
			if _, err := material.PublicKeyVerifier(""); err == nil {
				t.Error("an authority without a key has one")
			}
		})
	}
}

// TestLogs: which logs a text of keys and an address name.
func TestLogs(t *testing.T) {
	key := verify.Key{PEM: publicPEM(t, ecdsaKey(t, elliptic.P256()).Public())}
	log := publicPEM(t, ecdsaKey(t, elliptic.P256()).Public())
	one := newSigstore("one")
	many := bytes.Repeat(log, trust.MaxCertificates)
	tests := []struct {
		reason string
		log    verify.Log
		root   []byte
		good   bool
	}{
		{"one key", verify.Log{Keys: log}, nil, true},
		{"as many as may be", verify.Log{Keys: many}, nil, true},
		{"one more", verify.Log{Keys: append(bytes.Clone(many), log...)}, nil, false},
		{"as long as may be", verify.Log{Keys: padded(log, trust.MaxPEM)}, nil, true},
		{"longer", verify.Log{Keys: padded(log, trust.MaxPEM+1)}, nil, false},
		{"none", verify.Log{Keys: []byte("\n")}, nil, false},
		{"an invalid key", verify.Log{Keys: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: []byte("x")})}, nil, false},
		{"a key and an address", verify.Log{Keys: log, URL: "https://rekor.example"}, nil, true},
		{"an address without host", verify.Log{Keys: log, URL: "rekor"}, nil, false},
		{"an address that is none", verify.Log{Keys: log, URL: "https://%zz"}, nil, false},
		{"the root's log by its address", verify.Log{URL: "https://rekor.one.example"}, one.TrustedRoot(), true},
		{"the root's log by an invalid address", verify.Log{URL: "https://%zz"}, one.TrustedRoot(), false},
		{"a root as long as may be", verify.Log{}, padded(one.TrustedRoot(), trust.MaxRoot), true},
		{"a root that is longer", verify.Log{}, padded(one.TrustedRoot(), trust.MaxRoot+1), false},
	}
	for _, test := range tests {
		if _, err := composed(t, verify.Authority{Key: &key, Log: test.log, TrustedRoot: test.root}); (err == nil) != test.good {
			t.Errorf("%s: got %v", test.reason, err)
		}
	}
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[any]string{string(publicPEM(t, public)): "SHA-512", string(log): "SHA-256"} {
		material, err := composed(t, verify.Authority{Key: &key, Log: verify.Log{Keys: []byte(kind.(string))}})
		if err != nil {
			t.Fatal(err)
		}
		for _, log := range material.RekorLogs() {
			if got := log.SignatureHashFunc.String(); got != want {
				t.Errorf("the log signs with %s, want %s", got, want)
			}
		}
	}
	if trust.UsualHash(public) != "" || trust.UsualHash(ecdsaKey(t, elliptic.P384()).Public()) != "sha384" {
		t.Error("a key's own digest algorithm is another one")
	}
}

// TestBrokenTerms: what cannot be read is an error, and no trust of less.
func TestBrokenTerms(t *testing.T) {
	one := newSigstore("one")
	key := verify.Key{PEM: publicPEM(t, ecdsaKey(t, elliptic.P256()).Public())}
	keyless := func(ct verify.CT) *verify.Keyless {
		return &verify.Keyless{Identities: []verify.Identity{{Issuer: verify.Exactly("i"), Subject: verify.Exactly("s")}}, CT: ct}
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	template := x509.Certificate{SerialNumber: issue(t, "x", true, nil).certificate.SerialNumber}
	short, err := x509.CreateCertificate(rand.Reader, &template, &template, weak.Public(), weak)
	if err != nil {
		t.Fatal(err)
	}
	leaf := issue(t, "leaf", false, nil)
	ignored := verify.Log{Ignore: true}
	var noCA map[string]any
	if err := json.Unmarshal(one.TrustedRoot(), &noCA); err != nil {
		t.Fatal(err)
	}
	delete(noCA, "certificateAuthorities")
	withoutCA, err := json.Marshal(noCA)
	if err != nil {
		t.Fatal(err)
	}
	chain := one.TSA.ChainPEM()
	tests := []struct {
		reason    string
		authority verify.Authority
		good      bool
	}{
		{"keyless by a root", verify.Authority{Keyless: keyless(verify.CT{}), TrustedRoot: one.TrustedRoot()}, true},
		{"keyless by a root without a certificate authority", verify.Authority{Keyless: keyless(verify.CT{}), TrustedRoot: withoutCA}, false},
		{"keys of CT logs", verify.Authority{Keyless: keyless(verify.CT{Keys: one.CTLog.PublicPEM()}), Log: ignored}, true},
		{"broken keys of CT logs", verify.Authority{Keyless: keyless(verify.CT{Keys: []byte("x")}), Log: ignored}, false},
		{"a leaf", verify.Authority{Certificate: &verify.Certificate{Leaf: pemOf(leaf), CT: verify.CT{Ignore: true}}, Log: ignored}, true},
		{"a broken leaf", verify.Authority{Certificate: &verify.Certificate{Leaf: []byte("x"), CT: verify.CT{Ignore: true}}, Log: ignored}, false},
		{"a leaf of a short key", verify.Authority{Certificate: &verify.Certificate{Leaf: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: short}), CT: verify.CT{Ignore: true}}, Log: ignored}, false},
		{"a timestamp chain", verify.Authority{Key: &key, Log: ignored, Timestamp: verify.Timestamp{Chain: chain}}, true},
		{"a broken timestamp chain", verify.Authority{Key: &key, Log: ignored, Timestamp: verify.Timestamp{Chain: []byte("x")}}, false},
		{"a timestamp chain with two leaves", verify.Authority{Key: &key, Log: ignored, Timestamp: verify.Timestamp{Chain: append(one.TSA.LeafPEM(), chain...)}}, false},
	}
	for _, test := range tests {
		if _, err := composed(t, test.authority); (err == nil) != test.good {
			t.Errorf("%s: got %v", test.reason, err)
		}
	}
}

// TestTimestampingAuthorities: the root's timestamp authorities count where the root is used anyway,
// or where only they give the time.
func TestTimestampingAuthorities(t *testing.T) {
	one := newSigstore("one")
	key := verify.Key{PEM: publicPEM(t, ecdsaKey(t, elliptic.P256()).Public())}
	noTSA := newStore(t, trust.Options{Private: trust.Private{Rekor: one.Rekor.PublicPEM()}}).Snapshot()
	whole := newStore(t, trust.Options{TrustedRoot: one.TrustedRoot()}).Snapshot()
	given, ignored, now := verify.Log{Keys: one.Rekor.PublicPEM()}, verify.Log{Ignore: true}, time.Now()
	tests := []struct {
		reason    string
		from      *trust.Snapshot
		authority verify.Authority
		want      int
	}{
		{"the root's log is asked for", whole, verify.Authority{Key: &key}, 1},
		{"a log of the policy's own", whole, verify.Authority{Key: &key, Log: given}, 0},
		{"a log of the policy's own gives the time", whole, verify.Authority{Key: &key, Log: given, NotBefore: now}, 0},
		{"no log, and no time", whole, verify.Authority{Key: &key, Log: ignored}, 0},
		{"a start, and no log", whole, verify.Authority{Key: &key, Log: ignored, NotBefore: now}, 1},
		{"an end, and no log", whole, verify.Authority{Key: &key, Log: ignored, NotAfter: now}, 1},
		{"a root without timestamp authorities", noTSA, verify.Authority{Key: &key}, 0},
	}
	for _, test := range tests {
		test.authority.Name = "a"
		material, err := test.from.Material(test.authority)
		if err != nil || len(material.TimestampingAuthorities()) != test.want {
			t.Errorf("%s: got %v, %v; want %d", test.reason, material, err, test.want)
		}
	}
}

// TestOtherExtensions: only extensions right under Fulcio's arc describe an identity.
func TestOtherExtensions(t *testing.T) {
	arc := asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1}
	under := func(numbers ...int) asn1.ObjectIdentifier { return append(slices.Clone(arc), numbers...) }
	for name, test := range map[string]struct {
		oid   asn1.ObjectIdentifier
		value string
		want  bool // it is read
	}{
		"the last of the raw ones":                 {under(6), "refs/heads/main", true},
		"the other name, which is no extension":    {under(7), "x", false},
		"one below an extension":                   {under(1, 1), "issuer", false},
		"one of a number with the same beginning":  {asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 11, 1}, "issuer", false},
		"the arc itself":                           {arc, "issuer", false},
		"another one":                              {asn1.ObjectIdentifier{2, 5, 29, 15}, "x", false},
		"one that Fulcio may add, in another form": {under(25), "\xff", false},
	} {
		summary, err := trust.Summarize(&x509.Certificate{Extensions: []pkix.Extension{{Id: test.oid, Value: []byte(test.value)}}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if value, ok := summary.Extensions[test.oid.String()]; ok != test.want || ok && value != test.value || len(summary.Extensions) > 1 {
			t.Errorf("%s: got %v", name, summary.Extensions)
		}
	}
	san, unknown := asn1.ObjectIdentifier{2, 5, 29, 17}, asn1.ObjectIdentifier{1, 2, 3}
	checkable := trust.Checkable(&x509.Certificate{UnhandledCriticalExtensions: []asn1.ObjectIdentifier{san, unknown}})
	if left := checkable.UnhandledCriticalExtensions; len(left) != 1 || !left[0].Equal(unknown) {
		t.Errorf("unhandled critical extensions: got %v, want %v", left, unknown)
	}
}

// TestSignerNames: a signer has the name that was matched, or the best that there is.
// TestSignerID: an identity of OpenID Connect is the same by two authorities of one Fulcio; a
// distinguished name by two authorities is not.
func TestSignerID(t *testing.T) {
	id := func(s trust.Summary) string { return s.Signer("").ID }
	identity := trust.Summary{Subjects: []string{"ann@example.com"}, Issuer: "https://issuer", IssuerName: "CN=ca"}
	name := trust.Summary{Name: "CN=signer", IssuerName: "CN=ca"}
	for _, c := range []struct {
		reason string
		of     trust.Summary
		change func(*trust.Summary)
		same   bool
	}{
		{"another certificate authority of the identity", identity, func(s *trust.Summary) { s.IssuerName = "CN=next" }, true},
		{"another issuer of the identity", identity, func(s *trust.Summary) { s.Issuer = "https://other" }, false},
		{"another subject", identity, func(s *trust.Summary) { s.Subjects = []string{"bob@example.com"} }, false},
		{"another certificate authority of the name", name, func(s *trust.Summary) { s.IssuerName = "CN=next" }, false},
		{"nothing", name, func(*trust.Summary) {}, true},
	} {
		changed := c.of
		c.change(&changed)
		if got := id(c.of) == id(changed); got != c.same {
			t.Errorf("%s: the same signer %t", c.reason, got)
		}
	}
}

func TestSignerNames(t *testing.T) {
	fulcio := trust.Summary{Subjects: []string{"one", "two"}, Issuer: "https://issuer", IssuerName: "CN=ca"}
	plain := trust.Summary{Name: "CN=signer", Subjects: []string{"one"}, IssuerName: "CN=ca"}
	for _, test := range []struct {
		summary         trust.Summary
		matched         string
		subject, issuer string
	}{
		{fulcio, "two", "two", "https://issuer"},
		{fulcio, "", "one", "https://issuer"},
		{plain, "", "CN=signer", "CN=ca"},
		{trust.Summary{}, "", "", ""},
	} {
		if got := test.summary.Signer(test.matched); got.Subject != test.subject || got.Issuer != test.issuer {
			t.Errorf("%+v, matched by %q: got %q by %q", test.summary, test.matched, got.Subject, got.Issuer)
		}
	}
}
