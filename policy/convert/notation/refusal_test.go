package notation_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io/fs"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
	"github.com/quaymaster/quaymaster/policy/convert/notation"
)

// The smallest policy that is carried, in which a row exchanges one thing.
const base = `{"version": "1.0", "trustPolicies": [{"name": "a", "registryScopes": ["a.io/x"], "signatureVerification": {"level": "strict"},
  "trustStores": ["ca:wabbit"], "trustedIdentities": ["*"]}]}`

// TestRefused converts the base, and refuses it with one thing exchanged, by path.
func TestRefused(t *testing.T) {
	if err := converttest.Refused(base, []converttest.Exchange{
		{`"1.0"`, `"1.1"`, "version"}, {`"strict"`, `"permissive"`, "trustPolicies[0].signatureVerification.level"},
		{`"strict"`, `"audit"`, "trustPolicies[0].signatureVerification.level"}, {`"level": "strict"`, ``, "trustPolicies[0].signatureVerification.level: is missing"},
		{`"strict"`, `"skip"`, "trustPolicies[0]: skips verification and names signers"},
		{`"level": "strict"`, `"level": "strict", "override": {"revocation": "log"}`, "trustPolicies[0].signatureVerification.override.revocation"},
		{`"level": "strict"`, `"level": "strict", "verifyTimestamp": "afterCertExpiry"`, "trustPolicies[0].signatureVerification.verifyTimestamp"},
		{`"ca:wabbit"`, `"ca:nobody"`, "trustPolicies[0].trustStores[0]: the trust store truststore/x509/ca/nobody cannot be read"},
		{`"ca:wabbit"`, `"ca:../ca/wabbit"`, `trustPolicies[0].trustStores[0]: "ca:../ca/wabbit": want ca:NAME`}, {`"ca:wabbit"`, `"signingAuthority:x"`, `trustStores[0]: "signingAuthority:x": an ImageValidatingPolicy`},
		{`"ca:wabbit"`, `"tsa:clock"`, "trustPolicies[0].trustStores: has no store of the type ca"},
		{`"*"`, `"x509.subject: C=US, O=Wabbit Networks"`, "trustPolicies[0].trustedIdentities: names signers below a certificate authority"},
		{`"*"`, `"did:web:x"`, "trustPolicies[0].trustedIdentities[0]"}, {`"*"`, `"*", "x509.subject: C=US"`, "trustPolicies[0].trustedIdentities"}, {`"*"`, ``, "trustPolicies[0].trustedIdentities: is empty"},
		{`"a.io/x"`, `"registry-1.docker.io/acme/web"`, `trustPolicies[0].registryScopes[0]: "registry-1.docker.io/acme/web" matches nothing here`}, {`"a.io/x"`, `"a.io/*"`, "trustPolicies[0].registryScopes[0]"}, {`"a.io/x"`, `"a.io/x", "*"`, "trustPolicies[0].registryScopes[1]"}, {`"a.io/x"`, `"a.io/x", "a.io/x"`, "trustPolicies[0].registryScopes[1]"},
		{`"a.io/x"`, ``, "trustPolicies[0].registryScopes: is empty"}, {`"name": "a",`, ``, "trustPolicies[0].name"}, {`"name": "a"`, `"name": "a", "scope": 1`, "trustPolicies[0].scope: unknown field"},
		{`"trustPolicies": [`, `"trustPolicies": [` + skipped(200), "201 trust policies"}, {base[strings.Index(base, "[{"):], "[]}", "trustPolicies: 0 trust policies"}, {base, base + "\n---\n" + base, "2 documents"},
		{`"trustPolicies": [`, `"trustPolicies": [` + strings.Replace(skipped(1), "b.io/0", "a.io/x", 1), `trustPolicies[1].registryScopes[0]: "a.io/x" is there twice`},
		{`"level": "strict"`, `"level": "skip", "override": {"expiry": "enforce"}`, "trustPolicies[0]: skips verification and names signers"}, {`"strict"`, `"strict", "override": {"expiry": "enforce", "revocation": "skip"}`, "override.revocation"},
		{`"ca:wabbit"`, `"ca:wabbit", "ca"`, `trustStores[1]: "ca": want ca:NAME`}, {`"ca:wabbit"`, `"ca:wabbit", "ca:"`, `trustStores[1]: "ca:": want ca:NAME`}, {`"ca:wabbit"`, `"ca:wabbit", "ca:."`, `trustStores[1]: "ca:.": want ca:NAME`},
		{`"ca:wabbit"`, `"ca:wabbit", "ca:.."`, `trustStores[1]: "ca:..": want ca:NAME`}, {`"ca:wabbit"`, `"ca:wabbit", "ca:/"`, `trustStores[1]: "ca:/": want ca:NAME`},
		{`"ca:wabbit"`, `"ca:wabbit", "other:clock"`, "trustStores[1]: \"other:clock\": want"}, {`"ca:wabbit"`, `"ca:wabbit", "tsa:x/y"`, "trustStores[1]"}, {`["ca:wabbit"]`, `[]`, "trustPolicies[0].trustStores: has no store of the type ca"},
	}); err != nil {
		t.Error(err)
	}
}

// TestAllProblems reports all problems, and none that merely follows from another.
func TestAllProblems(t *testing.T) {
	if err := converttest.ExpectRefusal(base+"\n---\n"+base, "2 documents"); err != nil {
		t.Error(err)
	}
}

// TestAskedFor lists the fields that are converted only on request.
func TestAskedFor(t *testing.T) {
	for _, row := range []struct {
		reason, text string
		options      convert.Options
		problem      string
	}{
		{"a trust store without a folder", base, convert.Options{}, "trustPolicies[0].trustStores[0]: names the trust store ca:wabbit: give --root"},
	} {
		text, err := converttest.Fill(row.text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = convert.Convert(text, row.options); err == nil || !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: want %q, got %v", row.reason, row.problem, err)
		}
	}
}

// skipped are trust policies that verify nothing, as many as asked for.
func skipped(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `{"name": "s%d", "registryScopes": ["b.io/%d"], "signatureVerification": {"level": "skip"}}, `, i, i)
	}
	return out.String()
}

// TestAccepted converts the base with one thing exchanged, and finds it in the
// output.
func TestAccepted(t *testing.T) {
	if err := converttest.Accepted(base, []converttest.Exchange{
		{"", "", "name: notation-a\n"}, {"", "", "name: notation-unmatched\n"}, {"", "", "certs:\n"}, {"", "", "without: tsaCerts"}, {`"a.io/x"`, `"*"`, "name: notation-a\n"}, {`"a.io/x"`, `"*"`, "without: notation-unmatched"},
		{`"trustPolicies": [`, `"trustPolicies": [` + skipped(199), `!name.matches(r'^b\.io/198[:@]')`}, {`"trustPolicies": [`, `"trustPolicies": [` + skipped(1), "without: notation-s0"},
		{`"strict"`, `"strict", "override": {"revocation": "enforce"}, "verifyTimestamp": "always"`, "name: notation-a\n"}, {`"ca:wabbit"`, `"tsa:clock", "ca:wabbit"`, "tsaCerts:\n"},
		{`"ca:wabbit"`, `"ca:signers"`, "without: are kept by keeping"}, {`"ca:wabbit"], "trustedIdentities": ["*"]`, `"ca:signers"], "trustedIdentities": ["x509.subject: CN=builder"]`, "are kept by keeping"},
	}); err != nil {
		t.Error(err)
	}
}

// certificate is one that signs for itself, in PEM.
func certificate(t *testing.T, subject pkix.Name, constrained, authority bool, usage x509.KeyUsage) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: subject, BasicConstraintsValid: constrained, IsCA: authority, KeyUsage: usage}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// TestPinned keeps the certificates of the trusted identities, and refuses what could
// vouch for others.
func TestPinned(t *testing.T) {
	builder := pkix.Name{Country: []string{"XX"}, Province: []string{"P"}, Locality: []string{"L"}, Organization: []string{"O"}, OrganizationalUnit: []string{"U"}, CommonName: "builder"}
	tester := pkix.Name{Country: []string{"XX"}, CommonName: "tester"}
	const sign, certSign = x509.KeyUsageDigitalSignature, x509.KeyUsageCertSign
	one, two := certificate(t, builder, true, false, sign), certificate(t, tester, true, false, sign)
	plain, authority := certificate(t, tester, false, false, sign), certificate(t, builder, true, true, certSign)
	constrained := certificate(t, tester, true, false, sign|certSign)
	for _, row := range []struct {
		reason            string
		certs, identities []string
		want              []string
		problem           string
	}{
		{"everybody", []string{one, two}, []string{"*"}, []string{one, two}, ""},
		{"an authority and everybody", []string{authority}, []string{"*"}, []string{authority}, ""},
		{"one of two", []string{one, two}, []string{"x509.subject: CN=builder"}, []string{one}, ""},
		{"one by all that it has", []string{one, two}, []string{"x509.subject:c=XX, S=P, L=L,O=O, OU=U, CN=builder"}, []string{one}, ""},
		{"two by what both have", []string{one, two}, []string{"x509.subject: C=XX"}, []string{one, two}, ""},
		{"two by their names", []string{one, two}, []string{"x509.subject: CN=tester", "x509.subject: CN=builder"}, []string{one, two}, ""},
		{"one without constraints", []string{plain}, []string{"x509.subject: CN=tester"}, []string{plain}, ""},
		{"one that may not sign for others, whatever its key is for", []string{constrained}, []string{"x509.subject: CN=tester"}, []string{constrained}, ""},
		{"no certificate at all", nil, []string{"x509.subject: CN=tester"}, nil, ""},
		{"nobody", []string{one, two}, []string{"x509.subject: CN=builder, C=YY"}, nil, "is no certificate's subject"},
		{"an attribute of another", []string{two}, []string{"x509.subject: CN=tester, O=O"}, nil, "is no certificate's subject"},
		{"no identity", []string{one}, nil, nil, "is empty"},
		{"everybody beside one", []string{one}, []string{"x509.subject: CN=builder", "*"}, nil, "is combined with other identities"},
		{"an authority", []string{one, authority}, []string{"x509.subject: CN=builder"}, nil, "below a certificate authority"},
		{"what may sign certificates", []string{certificate(t, builder, false, false, certSign)}, []string{"x509.subject: CN=builder"}, nil, "below a certificate authority"},
		{"no PEM", []string{"x"}, []string{"x509.subject: CN=builder"}, nil, "below a certificate authority"},
		{"another kind of identity", []string{one}, []string{"did:x509:x"}, nil, "at[0]"},
		{"an escape", []string{one}, []string{`x509.subject: CN=build\,er`}, nil, "at[0]"},
		{"quotes", []string{one}, []string{`x509.subject: CN="builder"`}, nil, "at[0]"},
		{"a name alone", []string{one}, []string{"CN=builder"}, nil, "at[0]"},
		{"no value", []string{one}, []string{"x509.subject: CN="}, nil, "at[0]"},
		{"no name", []string{one}, []string{"x509.subject: =builder"}, nil, "at[0]"},
		{"no attribute", []string{one}, []string{"x509.subject: CN=builder, O"}, nil, "at[0]"},
		{"an attribute that is not compared", []string{one}, []string{"x509.subject: DC=x"}, nil, "at[0]"},
		{"an empty subject", []string{one}, []string{"x509.subject:"}, nil, "at[0]"},
	} {
		c := source.New(source.Options{})
		got, _ := notation.Pinned(c, row.certs, row.identities, "at")
		refused := row.problem != ""
		if refused != (len(c.Problems) == 1) || refused && !strings.Contains(c.Problems[0].Error(), row.problem) || !refused && !slices.Equal(got, row.want) {
			t.Errorf("%s: %d certificates and %v, want %d and %q", row.reason, len(got), c.Problems, len(row.want), row.problem)
		}
	}
}

// TestStores reads a trust store, whole or not at all.
func TestStores(t *testing.T) {
	cert := []byte(certificate(t, pkix.Name{CommonName: "x"}, true, true, x509.KeyUsageCertSign))
	block, _ := pem.Decode(cert)
	many := func(n int) fstest.MapFS {
		files := fstest.MapFS{}
		for i := range n {
			files[fmt.Sprint("truststore/x509/ca/wabbit/", i)] = &fstest.MapFile{Data: cert}
		}
		return files
	}
	with := func(name string, file *fstest.MapFile) fstest.MapFS {
		files := many(1)
		files["truststore/x509/ca/wabbit/"+name] = file
		return files
	}
	for _, row := range []struct {
		reason  string
		files   fstest.MapFS
		count   int
		problem string
	}{
		{"one file", many(1), 1, ""}, {"the most files", many(100), 100, ""}, {"one more", many(101), 0, "has 101 files"}, {"DER beside PEM", with("der", &fstest.MapFile{Data: block.Bytes}), 2, ""},
		{"no file", fstest.MapFS{"truststore/x509/ca/wabbit": &fstest.MapFile{Mode: fs.ModeDir}}, 0, "has 0 files"}, {"no store", fstest.MapFS{}, 0, "the trust store truststore/x509/ca/wabbit cannot be read"},
		{"a file that is too large", with("large", &fstest.MapFile{Data: make([]byte, 1<<20+1)}), 0, "truststore/x509/ca/wabbit/large cannot be read"},
		{"a file that is no certificate", with("text", &fstest.MapFile{Data: []byte("x")}), 0, "(text): no PEM block"},
	} {
		out, err := convert.Convert([]byte(base), convert.Options{Files: row.files})
		if (row.problem == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.problem) || strings.Count(string(out), "-----BEGIN") != row.count {
			t.Errorf("%s: %d certificates and %v, want %d and %q", row.reason, strings.Count(string(out), "-----BEGIN"), err, row.count, row.problem)
		}
	}
}
