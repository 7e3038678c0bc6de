package notation_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
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
		{`"ca:wabbit"`, `"ca:../wabbit"`, "trustPolicies[0].trustStores[0]"}, {`"ca:wabbit"`, `"signingAuthority:x"`, "trustPolicies[0].trustStores[0]"},
		{`"ca:wabbit"`, `"tsa:clock"`, "trustPolicies[0].trustStores: has no store of the type ca"},
		{`"*"`, `"x509.subject: C=US, O=Wabbit Networks"`, "trustPolicies[0].trustedIdentities: names signers below a certificate authority"},
		{`"*"`, `"did:web:x"`, "trustPolicies[0].trustedIdentities[0]"}, {`"*"`, `"*", "x509.subject: C=US"`, "trustPolicies[0].trustedIdentities"}, {`"*"`, ``, "trustPolicies[0].trustedIdentities: is empty"},
		{`"a.io/x"`, `"a.io/*"`, "trustPolicies[0].registryScopes[0]"}, {`"a.io/x"`, `"a.io/x", "*"`, "trustPolicies[0].registryScopes[1]"}, {`"a.io/x"`, `"a.io/x", "a.io/x"`, "trustPolicies[0].registryScopes[1]"},
		{`"a.io/x"`, ``, "trustPolicies[0].registryScopes: is empty"}, {`"name": "a",`, ``, "trustPolicies[0].name"}, {`"name": "a"`, `"name": "a", "scope": 1`, "trustPolicies[0].scope: unknown field"},
	}); err != nil {
		t.Error(err)
	}
}

// TestAskedFor has what is carried only if somebody asks for it.
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
