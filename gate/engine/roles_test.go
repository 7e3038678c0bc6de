package engine_test

import (
	"strings"
	"testing"
)

const validatingRoles = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: signed}
spec:
  validationActions: [Deny]
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [pods], operations: [CREATE, UPDATE]}]}
  matchImageReferences: [{glob: "HOST/shop/*"}]
  validationConfigurations: {mutateDigest: false, verifyDigest: false, required: false}
  attestors: [{name: k, cosign: {key: {data: KEY}, ctlog: {insecureIgnoreTlog: true, insecureIgnoreSCT: true}}}]
  variables: [{name: later, expression: images.ephemeralContainers}]
  validations: [{expression: "EXPRESSION"}]
`

// TestUnknownRoles: an endpoint that receives images alone does not know which of them are of init
// containers. A policy about these admits an image there only if it does in every role.
func TestUnknownRoles(t *testing.T) {
	v := newVariants(t)
	signed, err := v.Signed("good")
	if err != nil {
		t.Fatal(err)
	}
	unsigned := v.Build("shop/bad", "1", "bad")
	const admitted, denied, unknown = "", "[unsigned]", "the role of each image"
	for _, c := range []struct{ expression, signed, unsigned, reason string }{
		{"images.containers.all(i, verifyImageSignatures(i, [attestors.k]) > 0)", admitted, denied, "containers"},
		{"images.initContainers.all(i, verifyImageSignatures(i, [attestors.k]) > 0)", admitted, unknown, "init containers alone"},
		{"images['imageVolumes'].all(i, verifyImageSignatures(i, [attestors.k]) > 0)", admitted, unknown, "volumes, by an index"},
		{"variables.later.all(i, verifyImageSignatures(i, [attestors.k]) > 0)", admitted, unknown, "later containers, through a variable"},
		{"(images.containers + images.initContainers).all(i, verifyImageSignatures(i, [attestors.k]) > 0)", admitted, denied, "both lists as one"},
		{"images.all(role, images[role].all(i, verifyImageSignatures(i, [attestors.k]) > 0))", admitted, denied, "all lists"},
		{"size(images.initContainers) == 0", unknown, unknown, "no init container at all"},
		{"images.containers.all(i, verifyImageSignatures(i, [attestors.k]) > 0) && size(images.initContainers) == 0", unknown, denied, "signed containers, and no init container"},
		{"size(images.containers) < 2", admitted, admitted, "one container"},
	} {
		g := gateOfVariants(t, v, strings.Replace(validatingRoles, "EXPRESSION", c.expression, 1))
		for _, at := range endpoints()[2:] {
			for image, want := range map[string]string{signed.ByDigest(): c.signed, unsigned.ByDigest(): c.unsigned} {
				if allowed, says := at.ask(t, g, image); allowed != (want == admitted) || !strings.Contains(says, want) {
					t.Errorf("%s, %s: %s: allowed %t, want %q:\n%s", at.name, c.reason, image, allowed, want, says)
				}
			}
		}
	}
}
