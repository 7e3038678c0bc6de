package kyverno_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// The smallest policy that is carried, in which a row exchanges one thing.
const base = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["a.io/*"]
      attestors: [{entries: [{keys: {publicKeys: ${one.pub}}}]}]
`

// TestRefused converts the base, and refuses it with one thing exchanged, by path.
func TestRefused(t *testing.T) {
	if err := converttest.Refused(base, []converttest.Exchange{
		{"kyverno.io/v1", "kyverno.io/v2", "apiVersion"}, {"kind: ClusterPolicy", "kind: CleanupPolicy", "kind"}, {"{name: p}", "{}", "metadata.name"},
		{"spec:", "spec:\n  applyRules: One", "spec.applyRules"}, {"spec:", "spec:\n  validationFailureActionOverrides: [{action: Audit}]", "spec.validationFailureActionOverrides"},
		{"spec:", "spec:\n  emitWarning: true", "spec.emitWarning"}, {"spec:", "spec:\n  admission: false", "spec.admission"}, {"spec:", "spec:\n  validationFailureAction: Hope", "spec.validationFailureAction"},
		{"spec:", "spec:\n  failurePolicy: Hope", "spec.failurePolicy"}, {"spec:", "spec:\n  generateExisting: true", "spec.generateExisting: unknown field"},
		{"    verifyImages:", "    context: [{name: x}]\n    verifyImages:", "spec.rules[0].context"}, {"    verifyImages:", "    preconditions: {all: []}\n    verifyImages:", "spec.rules[0].preconditions"},
		{"    verifyImages:", "    imageExtractors: {Task: []}\n    verifyImages:", "spec.rules[0].imageExtractors"}, {"    verifyImages:", "    validate: {}\n    verifyImages:", "spec.rules[0].validate: is a rule of another kind"},
		{"{kinds: [Pod]}", "{kinds: [Deployment]}", "spec.rules[0].match.any[0].resources.kinds[0]"}, {"{kinds: [Pod]}", "{}", "spec.rules[0].match.any[0].resources.kinds: is missing"},
		{"{kinds: [Pod]}", "{kinds: [Pod], operations: [DELETE]}", "spec.rules[0].match.any[0].resources.operations[0]"}, {"{kinds: [Pod]}", "{kinds: [Pod], names: [x]}", "spec.rules[0].match.any[0].resources: speaks of names"},
		{"{kinds: [Pod]}", "{kinds: [Pod], selector: {matchLabels: {a: 'b*'}}}", "spec.rules[0].match.any[0].resources.selector.matchLabels[a]"},
		{"{resources: {kinds: [Pod]}}", "{roles: [x], resources: {kinds: [Pod]}}", "spec.rules[0].match.any[0]: speaks of subjects"},
		{"{any: [{resources: {kinds: [Pod]}}]}", "{all: [{resources: {kinds: [Pod]}}, {resources: {kinds: [Pod]}}]}", "spec.rules[0].match.all"},
		{"    verifyImages:", "    exclude: {any: [{resources: {kinds: [Pod], names: [x]}}]}\n    verifyImages:", "spec.rules[0].exclude.any[0].resources"},
		{"    verifyImages:", "    exclude: {any: [{subjects: [{kind: User, name: x}]}]}\n    verifyImages:", "spec.rules[0].exclude.any[0]: speaks of subjects"},
		{`"a.io/*"`, `"https://a.io/*"`, "spec.rules[0].verifyImages[0].imageReferences[0]"}, {`imageReferences: ["a.io/*"]`, `image: "a.io/*"`, "spec.rules[0].verifyImages[0]: has image"},
		{"[{keys: {publicKeys: ${one.pub}}}]", "[{keys: {publicKeys: ${one.pub}}, annotations: {conditions: '{{ x }}'}}]", "spec.rules[0].verifyImages[0].attestors[0].entries[0].annotations.conditions"},
		{`imageReferences: ["a.io/*"]`, `imageReferences: ["{{ x }}"]`, "spec.rules[0].verifyImages[0].imageReferences[0]: \"{{ x }}\" has a variable"}, {`imageReferences: ["a.io/*"]`, `type: Hope`, "spec.rules[0].verifyImages[0].type"},
		{"      attestors:", "      validate: {deny: {}}\n      attestors:", "spec.rules[0].verifyImages[0].validate"}, {"      attestors:", "      failureAction: Hope\n      attestors:", "spec.rules[0].verifyImages[0].failureAction"},
		{"[{entries:", "[{count: 2, entries:", "spec.rules[0].verifyImages[0].attestors[0]: asks for 2 of 1"}, {"keys: {publicKeys: ${one.pub}}", "keys: {}", "spec.rules[0].verifyImages[0].attestors[0].entries[0].keys"},
		{"publicKeys: ${one.pub}", "kms: vault", "spec.rules[0].verifyImages[0].attestors[0].entries[0].keys.kms"}, {"publicKeys: ${one.pub}", "secret: {name: x}", "spec.rules[0].verifyImages[0].attestors[0].entries[0].keys.secret"},
		{"publicKeys: ${one.pub}", "publicKeys: ${one.pub}, signatureAlgorithm: sha1", "spec.rules[0].verifyImages[0].attestors[0].entries[0].keys.signatureAlgorithm"},
		{"keys: {publicKeys: ${one.pub}}", "keyless: {issuer: a}", "spec.rules[0].verifyImages[0].attestors[0].entries[0].keyless: has no subject"},
		{"keys: {publicKeys: ${one.pub}}", "certificates: {cert: ${fulcio.pem}}, signatureAlgorithm: sha512", "spec.rules[0].verifyImages[0].attestors[0].entries[0].certificates"},
		{"      attestors: [{entries: [{keys: {publicKeys: ${one.pub}}}]}]\n", "", "spec.rules[0].verifyImages[0]: requires a proof"},
		{"    - imageReferences", "    - type: Notary\n      imageReferences", "spec.rules[0].verifyImages[0].attestors[0].entries[0]: is not a certificate alone"},
		{"      attestors:", "      attestations: [{type: a, conditions: [{all: []}], attestors: [{entries: [{keys: {kms: 'awskms:///x'}}]}]}]\n      attestors:", "spec.rules[0].verifyImages[0].attestations[0].conditions"},
		{"      attestors:", "      attestations: [{type: a}]\n      attestors:", "spec.rules[0].verifyImages[0].attestations[0].attestors"},
	}); err != nil {
		t.Error(err)
	}
}
