package trust_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"net"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/quaymaster/quaymaster/internal/testkit"
	"github.com/quaymaster/quaymaster/verify"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

func extension(number int, value []byte) pkix.Extension {
	return pkix.Extension{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, number}, Value: value}
}

func der(t *testing.T, text string) []byte {
	t.Helper()
	encoded, err := asn1.MarshalWithParams(text, "utf8")
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

func TestSummarize(t *testing.T) {
	tests := []struct {
		reason     string
		extensions []pkix.Extension
		issuer     string
		fails      bool
	}{
		{"neither issuer", nil, "", false},
		{"the old one", []pkix.Extension{extension(1, []byte("a"))}, "a", false},
		{"the new one", []pkix.Extension{extension(8, der(t, "a"))}, "a", false},
		{"both", []pkix.Extension{extension(1, []byte("a")), extension(8, der(t, "a"))}, "a", false},
		{"both, and they disagree", []pkix.Extension{extension(1, []byte("a")), extension(8, der(t, "b"))}, "", true},
		{"the new one, empty beside the old", []pkix.Extension{extension(1, []byte("a")), extension(8, der(t, ""))}, "", true},
		{"the old one twice", []pkix.Extension{extension(1, []byte("a")), extension(1, []byte("a"))}, "", true},
		{"the new one is no DER", []pkix.Extension{extension(8, []byte("a"))}, "", true},
		{"bytes after the DER", []pkix.Extension{extension(8, append(der(t, "a"), 0))}, "", true},
		{"an extension that came later", []pkix.Extension{extension(1, []byte("a")), extension(99, []byte("b"))}, "a", false},
		{"an extension of another arc", []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57264, 1, 1, 1}, Value: []byte("a")}}, "", false},
	}
	for _, test := range tests {
		summary, err := trust.Summarize(&x509.Certificate{Extensions: test.extensions})
		if (err != nil) != test.fails || summary.Issuer != test.issuer {
			t.Errorf("%s: issuer %q, error %v; want %q, an error: %t", test.reason, summary.Issuer, err, test.issuer, test.fails)
		}
	}
	summary, err := trust.Summarize(&x509.Certificate{
		URIs:           []*url.URL{{Scheme: "https", Host: "a.example", Path: "/b"}},
		EmailAddresses: []string{"a@example.org"}, DNSNames: []string{"a.example"}, IPAddresses: []net.IP{net.IPv4(192, 0, 2, 1)},
	})
	if want := []string{"https://a.example/b", "a@example.org", "a.example", "192.0.2.1"}; err != nil || !slices.Equal(summary.Subjects, want) {
		t.Errorf("subjects %v, %v; want %v", summary.Subjects, err, want)
	}
}

// TestAdmit: issuer and subject must be those of one identity, and every
// extension must fit.
func TestAdmit(t *testing.T) {
	summary := trust.Summary{Subjects: []string{"a", "b"}, Issuer: "i", Extensions: map[string]string{"1.3.6.1.4.1.57264.1.20": "push"}}
	identity := func(issuer, subject string) verify.Identity {
		return verify.Identity{Issuer: verify.Exactly(issuer), Subject: verify.Exactly(subject)}
	}
	trigger := func(value string) verify.Extension {
		return verify.Extension{OID: "1.3.6.1.4.1.57264.1.20", Name: "buildTrigger", Value: verify.Exactly(value)}
	}
	tests := []struct {
		reason  string
		keyless verify.Keyless
		subject string
		want    verify.Code
	}{
		{"the first subject", verify.Keyless{Identities: []verify.Identity{identity("i", "a")}}, "a", ""},
		{"the second subject", verify.Keyless{Identities: []verify.Identity{identity("i", "b")}}, "b", ""},
		{"the second identity", verify.Keyless{Identities: []verify.Identity{identity("j", "a"), identity("i", "b")}}, "b", ""},
		{"halves of two identities", verify.Keyless{Identities: []verify.Identity{identity("j", "a"), identity("i", "c")}}, "", verify.WrongIdentity},
		{"no identity", verify.Keyless{}, "", verify.WrongIdentity},
		{"an extension", verify.Keyless{Identities: []verify.Identity{identity("i", "a")}, Extensions: []verify.Extension{trigger("push")}}, "a", ""},
		{"one of two extensions", verify.Keyless{Identities: []verify.Identity{identity("i", "a")}, Extensions: []verify.Extension{trigger("push"), trigger("schedule")}}, "", verify.WrongExtension},
	}
	for _, test := range tests {
		subject, rejection := summary.Admit(test.keyless)
		if subject != test.subject || rejection == nil && test.want != "" || rejection != nil && rejection.Code != test.want {
			t.Errorf("%s: got %q, %v; want %q, %q", test.reason, subject, rejection, test.subject, test.want)
		}
	}
}

// TestValidUntil: the end is that of the first of the chain's certificates, or of the authority's period.
func TestValidUntil(t *testing.T) {
	sigstore := testkit.Must(verifytest.New(verifytest.Options{}))(t)
	leaf := testkit.Must(sigstore.Keyless(verifytest.Identity{Email: "a@example.com", Issuer: "https://issuer.example"}))(t).Certificate()
	now := leaf.NotBefore.Add(time.Second)
	soon, late := now.Add(time.Minute), leaf.NotAfter.Add(time.Hour)
	for reason, c := range map[string]struct{ period, at, want time.Time }{
		"no period": {time.Time{}, now, leaf.NotAfter},
		"a period that ends after the certificate":     {late, now, leaf.NotAfter},
		"a period that ends before the certificate":    {soon, now, soon},
		"after the period":                             {soon, soon.Add(time.Second), time.Time{}},
		"after the certificate and within the period ": {late, leaf.NotAfter.Add(time.Second), time.Time{}},
	} {
		trusted := testkit.Must(root.NewTrustedRootFromJSON(sigstore.TrustedRoot()))(t)
		for _, authority := range trusted.FulcioCertificateAuthorities() {
			authority.(*root.FulcioCertificateAuthority).ValidityPeriodEnd = c.period
		}
		got, err := trust.ValidUntil(leaf, trusted, c.at)
		if !got.Equal(c.want) || (err == nil) == c.want.IsZero() {
			t.Errorf("%s: %s, %v; want %s", reason, got, err, c.want)
		}
	}
}
