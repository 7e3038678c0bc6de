package sigstore_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// The smallest policy that is carried, in which a row exchanges one thing.
const base = `apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: c}
spec:
  images: [{glob: "a.io/**"}]
  authorities: [{key: {data: ${one.pub}}}]
`

// TestRefused converts the base, and refuses it with one thing exchanged, by path.
func TestRefused(t *testing.T) {
	if err := converttest.Refused(base, []converttest.Exchange{
		{"kind: ClusterImagePolicy", "kind: TrustRoot", "kind"}, {"spec:", "spec:\n  mode: hope", "spec.mode"}, {"spec:", "spec:\n  policy: {type: cue}", "spec.policy: a policy in CUE or Rego"},
		{"spec:", "spec:\n  match: [{group: apps, version: v1, resource: deployments}]", "spec.match[0]"}, {"[{glob: \"a.io/**\"}]", "[]", "spec.images"}, {"a.io/**", "a.io/?", "spec.images[0].glob"},
		{"{data: ${one.pub}}", "{secretRef: {name: x}}", "spec.authorities[0].key.secretRef"}, {"{data: ${one.pub}}", "{kms: x}", "spec.authorities[0].key.kms"}, {"{data: ${one.pub}}", "{}", "spec.authorities[0].key: has 0"},
		{"{data: ${one.pub}}", "{data: ${one.pub}, hashAlgorithm: md5}", "spec.authorities[0].key.hashAlgorithm"},
		{"{key: ", "{ctlog: {trustRootRef: x}, key: ", "spec.authorities[0].ctlog.trustRootRef"}, {"{key: ", "{rfc3161timestamp: {trustRootRef: x}, key: ", "spec.authorities[0].rfc3161timestamp"},
		{"{key: ", "{source: [{oci: a}, {oci: b}], key: ", "spec.authorities[0].source"}, {"{key: ", "{attestations: [{name: a, predicateType: vuln, policy: {type: cue}}], key: ", "spec.authorities[0].attestations[0].policy"},
		{"{key: ", "{attestations: [{name: a, predicateType: x}], key: ", "spec.authorities[0].attestations[0].predicateType"},
		{"key: {data: ${one.pub}}", "keyless: {identities: []}", "spec.authorities[0].keyless.identities"}, {"key: {data: ${one.pub}}", "keyless: {trustRootRef: x}", "spec.authorities[0].keyless.trustRootRef"},
		{"key: {data: ${one.pub}}", "keyless: {ca-cert: {data: x}}", "spec.authorities[0].keyless.ca-cert"}, {"key: {data: ${one.pub}}", "keyless: {identities: [{issuer: a}]}", "spec.authorities[0].keyless.identities[0]"},
		{"key: {data: ${one.pub}}", "keyless: {identities: [{issuer: a, subject: 'b*'}]}", "spec.authorities[0].keyless.identities[0]: \"b*\" is compared letter by letter"},
		{"key: {data: ${one.pub}}", "static: {action: hope}", "spec.authorities[0].static.action"}, {"key: {data: ${one.pub}}", "name: x", "spec.authorities[0]: is not exactly one"},
	}); err != nil {
		t.Error(err)
	}
}
