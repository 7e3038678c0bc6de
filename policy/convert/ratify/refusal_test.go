package ratify_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// The smallest policies that are carried, in which a row exchanges one thing.
const (
	ratifyBase = `apiVersion: config.ratify.deislabs.io/v1beta1
kind: Verifier
metadata: {name: v}
spec: {name: cosign, parameters: {trustPolicies: [{name: a, scopes: ["*"], keys: [{file: /etc/pki/one.pub}]}]}}
`
	ratifyNotationBase = `apiVersion: config.ratify.deislabs.io/v1beta1
kind: KeyManagementProvider
metadata: {name: p}
spec: {type: inline, parameters: {value: ${fulcio.pem}}}
---
apiVersion: config.ratify.deislabs.io/v1beta1
kind: Verifier
metadata: {name: v}
spec: {name: notation, parameters: {verificationCertStores: {ca: {certs: [p]}}, trustPolicyDoc: {version: "1.0", trustPolicies: [
  {name: a, registryScopes: ["*"], signatureVerification: {level: strict}, trustStores: ["ca:certs"], trustedIdentities: ["*"]}]}}}
`
	executorBase = `apiVersion: config.ratify.sh/v2alpha1
kind: Executor
metadata: {name: e}
spec:
  scopes: [a.io]
  stores: [{type: registry-store, parameters: {}}]
  verifiers: [{name: c, type: cosign, parameters: {trustPolicies: [{keys: {inline: ${one.pub}}}]}}, {name: m, type: notation, parameters: {certificates: [{type: ca, inline: ${fulcio.pem}}]}}]
  policyEnforcer: {type: threshold-policy, parameters: {policy: {threshold: 1, rules: [{verifierName: c}, {verifierName: m}]}}}
`
)

// TestRefused converts each base, and refuses it with one thing exchanged, by path.
func TestRefused(t *testing.T) {
	for base, rows := range map[string][]converttest.Exchange{
		ratifyBase: {
			{"Verifier", "Store", "kind: config.ratify.deislabs.io/v1beta1 Store"}, {"v1beta1", "v1alpha1", "kind"}, {"name: cosign", "name: sbom", `spec.name: "sbom"`},
			{"name: cosign", "name: cosign, address: /plugins", "spec: has an address"}, {ratifyBase, ratifyBase + "---\n" + ratifyBase, "2 Verifiers"},
			{"trustPolicies: [", "key: /x, trustPolicies: [", "spec.parameters.key"}, {`["*"]`, `["a.io/x"]`, "spec.parameters.trustPolicies[0].scopes[0]"},
			{`["*"]`, `["a.io/*", "a.io/b*"]`, "spec.parameters.trustPolicies[0].scopes[1]"}, {`["*"]`, `["*", "a.io/*"]`, "spec.parameters.trustPolicies[0].scopes[0]"},
			{`["*"]`, `["*.io"]`, "spec.parameters.trustPolicies[0].scopes[0]"}, {`["*"]`, `[]`, "spec.parameters.trustPolicies[0].scopes: is empty"},
			{"file: /etc/pki/one.pub", "provider: vault", `spec.parameters.trustPolicies[0].keys[0].provider: names the provider "vault"`},
			{"file: /etc/pki/one.pub", "provider: vault, name: k", "spec.parameters.trustPolicies[0].keys[0].name"},
			{"file: /etc/pki/one.pub", "name: k", "spec.parameters.trustPolicies[0].keys[0]: is not exactly one"},
			{"keys: [{file: /etc/pki/one.pub}]", "keyless: {certificateIdentity: a}", "spec.parameters.trustPolicies[0].keyless: has no issuer"},
			{"keys: [{file: /etc/pki/one.pub}]", "version: 2.0.0", "spec.parameters.trustPolicies[0].version"},
			{"name: a,", "", "spec.parameters.trustPolicies[0].name"}, {"name: a,", "name: a, tlogVerify: false,", "spec.parameters.trustPolicies[0].tlogVerify: unknown field"},
		},
		ratifyNotationBase: {
			{"type: inline", "type: azurekeyvault", "document 1: spec.type"}, {"value:", "contentType: key, value:", "document 2: spec.parameters.verificationCertStores.ca.certs[0]"},
			{"{certs: [p]}", "{certs: [q]}", `document 2: spec.parameters.verificationCertStores.ca.certs[0]: names the provider "q"`},
			{"{ca: {certs: [p]}}", "{certs: [p]}", "document 2: spec.parameters.verificationCertStores.certs"},
			{"parameters: {verificationCertStores", "parameters: {verificationCerts: [x], verificationCertStores", "document 2: spec.parameters.verificationCerts"},
			{`"ca:certs"`, `"ca:none"`, "document 2: spec.parameters.trustPolicyDoc.trustPolicies[0].trustStores[0]"},
			{`level: strict`, `level: audit`, "document 2: spec.parameters.trustPolicyDoc.trustPolicies[0].signatureVerification.level"},
		},
		executorBase: {
			{"kind: Executor", "kind: NamespacedExecutor", "kind"}, {"[a.io]", "[]", "spec.scopes: is empty"}, {"[a.io]", `["*"]`, "spec.scopes[0]"}, {"[a.io]", `["a.io/x:1"]`, "spec.scopes[0]"},
			{"[a.io]", "[a.io, a.io]", "spec.scopes[1]"}, {"registry-store", "filesystem-oci-store", "spec.stores[0].type"},
			{"parameters: {}}]", "parameters: {caPem: x}}]", "spec.stores[0].parameters.caPem"}, {"parameters: {}}]", "parameters: {credential: {provider: static, username: a}}}]", "spec.stores[0].parameters.credential"},
			{"parameters: {}}]", "parameters: {proxy: x}}]", "spec.stores[0].parameters.proxy: unknown field"}, {"type: cosign", "type: sbom", "spec.verifiers[0].type"},
			{"name: m,", "name: c,", "spec.verifiers[1].name"}, {"type: ca", "type: signingAuthority", "spec.verifiers[1].parameters.certificates[0].type"},
			{"inline: ${fulcio.pem}", "files: [x]", "spec.verifiers[1].parameters.certificates[0].files"}, {"{certificates:", "{scopes: [a.io/x], certificates:", "spec.verifiers[1].parameters.scopes"},
			{"{certificates:", "{trustedIdentities: ['x509.subject: C=US'], certificates:", "spec.verifiers[1].parameters.trustedIdentities"},
			{"[{keys: {inline: ${one.pub}}}]", "[{keys: {inline: ${one.pub}}}, {keys: {inline: ${two.pub}}}]", "spec.verifiers[0].parameters.trustPolicies"},
			{"[{keys: {inline: ${one.pub}}}]", "[{scopes: [b.io], keys: {inline: ${one.pub}}}]", "spec.verifiers[0].parameters.trustPolicies"},
			{"keys: {inline: ${one.pub}}", "keys: {azurekeyvault: {}}", "spec.verifiers[0].parameters.trustPolicies[0].keys.azurekeyvault"},
			{"keys: {inline: ${one.pub}}", "keys: {inline: ${one.pub}}, certificateIdentity: a", "spec.verifiers[0].parameters.trustPolicies[0]: has keys and an identity"},
			{"keys: {inline: ${one.pub}}", "keys: {inline: ${one.pub}}, ignoreObserverTimestamps: true", "spec.verifiers[0].parameters.trustPolicies[0].ignoreObserverTimestamps"},
			{"keys: {inline: ${one.pub}}", "ignoreTLog: true", "spec.verifiers[0].parameters.trustPolicies[0]: has no issuer"},
			{"threshold-policy", "rego-policy", "spec.policyEnforcer.type"}, {"threshold: 1", "threshold: 3", "spec.policyEnforcer.parameters.policy.threshold"},
			{"{verifierName: m}]", "{verifierName: x}]", "spec.policyEnforcer.parameters.policy.rules[1].verifierName"},
			{"{verifierName: m}]", "{verifierName: m, rules: [{verifierName: c}]}]", "spec.policyEnforcer.parameters.policy.rules[1].rules"},
			{"  policyEnforcer: {type: threshold-policy, parameters: {policy: {threshold: 1, rules: [{verifierName: c}, {verifierName: m}]}}}\n", "", "spec.policyEnforcer: is missing"},
		},
	} {
		if err := converttest.Refused(base, rows); err != nil {
			t.Error(err)
		}
	}
}

// TestAskedFor has what is carried only if somebody asks for it.
func TestAskedFor(t *testing.T) {
	for _, row := range []struct {
		reason, text string
		options      convert.Options
		problem      string
	}{
		{"a key's file without a folder", ratifyBase, convert.Options{}, "spec.parameters.trustPolicies[0].keys[0].file"},
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
