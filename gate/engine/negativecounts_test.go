package engine_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/gatetest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

const scannedByBoth = `
apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: scanned}
spec:
  validationActions: [Deny]
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}
  matchImageReferences: [{glob: HOST/shop/*}]
  attestors: [{name: key, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true}}}, {name: second, cosign: {key: {data: SECOND}, ctlog: {insecureIgnoreTlog: true}}}]
  attestations: [{name: scan, intoto: {type: SCAN}}]
  validations:
  - {expression: 'images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.key]) > 0)'}
  - {expression: "images.containers.all(i, extractPayload(i, attestations.scan).predicate.?verdict.orValue('') == 'clean')"}
`

// TestCountsOfUnreadStatements: an attestor that must not have attested is counted by every statement,
// also where an expression reads the statement of another attestor.
func TestCountsOfUnreadStatements(t *testing.T) {
	v := newVariants(t)
	attested := func(name string, by ...*verifytest.Signer) gatetest.Image {
		image := v.Build("shop/"+name, "1", name)
		for i, signer := range by {
			verdict := map[string]any{"verdict": []string{"clean", "dirty"}[i]}
			if err := v.AttestBundle(image, verifytest.Claim{Signer: signer, NoLog: true}, gatetest.ScanType, verdict); err != nil {
				t.Fatal(err)
			}
		}
		return image
	}
	both, one, foreign := attested("both", v.Signer, v.Second), attested("one", v.Signer), attested("foreign", v.Signer, v.Stranger)
	const none = "  - {expression: 'images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.second]) == 0)'}\n"
	for _, c := range []struct {
		reason, policy string
		image          gatetest.Image
		want           gate.Result
	}{
		{"only the attestor whose statement is read", scannedByBoth + none, one, gate.Allow},
		{"a statement by a key of no attestor", scannedByBoth + none, foreign, gate.Allow},
		{"the attestor that must not attest", scannedByBoth + none, both, gate.Deny},
		{"an attestor that may attest", scannedByBoth, both, gate.Allow},
	} {
		outcome := gateOfVariants(t, v, c.policy).Decide(t.Context(), podOf(t, c.image.Name))
		if outcome.Result != c.want {
			t.Errorf("%s: %s, want %s: %v", c.reason, outcome.Result, c.want, against(outcome))
		}
	}
}
