package engine_test

import (
	"fmt"
	"strings"
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

// TestSubjectsOfStatements: statements with the same predicate about other subjects are different ones.
// What an expression reads is of a statement by the attestor that it requires.
func TestSubjectsOfStatements(t *testing.T) {
	v := newVariants(t)
	attested := func(name string, statements ...func(digest string) (*verifytest.Signer, *verifytest.Statement)) gatetest.Image {
		image := v.Build("shop/"+name, "1", name)
		for _, statement := range statements {
			signer, content := statement(image.Manifest.Digest)
			bundle, err := v.Sigstore.Bundle(verifytest.Claim{Signer: signer, NoLog: true, Statement: content})
			if err == nil {
				err = v.PutBundle(image, bundle, gatetest.ScanType)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		return image
	}
	by := func(signer *verifytest.Signer, subject string) func(string) (*verifytest.Signer, *verifytest.Statement) {
		return func(digest string) (*verifytest.Signer, *verifytest.Statement) {
			statement := verifytest.Attestation(digest, gatetest.ScanType, map[string]any{"verdict": "clean"})
			statement.Subjects[0].Name = subject
			return signer, statement
		}
	}
	head, _, _ := strings.Cut(scannedByBoth, "  - {expression:")
	policy := head + "  - {expression: \"images.containers.all(i, verifyAttestationSignatures(i, attestations.scan, [attestors.second]) > 0 && " +
		"extractPayload(i, attestations.scan).subject.exists(s, s.?name.orValue('') == 'prod/app'))\"}\n"
	images := map[gate.Result][]gatetest.Image{
		gate.Deny:  {attested("other", by(v.Signer, "prod/app"), by(v.Second, "staging/app")), attested("none", by(v.Signer, "prod/app"))},
		gate.Allow: {attested("same", by(v.Signer, "staging/app"), by(v.Second, "prod/app"))},
	}
	for i := range 6 { // whichever of two statements comes first
		images[gate.Allow] = append(images[gate.Allow], attested(fmt.Sprint("two-", i), by(v.Signer, "staging/app"), by(v.Second, "staging/app"), by(v.Second, "prod/app")))
	}
	for want, list := range images {
		for _, image := range list {
			outcome := gateOfVariants(t, v, policy).Decide(t.Context(), podOf(t, image.Name))
			if outcome.Result != want {
				t.Errorf("%s: %s, want %s: %v", image.Name, outcome.Result, want, against(outcome))
			}
		}
	}
}

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
