package ratify_test

import (
	"fmt"
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
			{"Verifier", "Store", "kind: config.ratify.deislabs.io/v1beta1 Store"}, {"config.ratify.deislabs.io", "config.ratify.sh", "kind: config.ratify.sh/v1beta1 Verifier"}, {"v1beta1", "v1alpha1", "kind"}, {"name: cosign", "name: sbom", `spec.name: "sbom"`},
			{"name: cosign", "name: cosign, address: /plugins", "spec: has an address"}, {ratifyBase, ratifyBase + "---\n" + ratifyBase, "2 Verifiers"},
			{"trustPolicies: [", "key: /x, trustPolicies: [", "spec.parameters.key"}, {`["*"]`, `["a.io/x"]`, "spec.parameters.trustPolicies[0].scopes[0]"},
			{`["*"]`, `["a.io/*", "a.io/b*"]`, "spec.parameters.trustPolicies[0].scopes[1]"}, {`["*"]`, `["*", "a.io/*"]`, "spec.parameters.trustPolicies[0].scopes[0]"},
			{`["*"]`, `["*.io"]`, "spec.parameters.trustPolicies[0].scopes[0]"}, {`["*"]`, `["registry.hub.docker.com/acme/*"]`, "matches nothing here"}, {`["*"]`, `["registry-1.docker.io/acme/web:v1"]`, "matches nothing here"}, {`["*"]`, `["nginx*"]`, `scopes[0]: "nginx*" has no registry`}, {`["*"]`, `["nginx:*"]`, "has no registry"}, {`["*"]`, `["acme/app:*"]`, "has no registry"}, {`["*"]`, `[]`, "spec.parameters.trustPolicies[0].scopes: is empty"},
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
			{"{ca: {certs: [p]}}", "{certs: [p]}", "document 2: spec.parameters.verificationCertStores.certs: is a store of no type"},
			{"parameters: {verificationCertStores", "parameters: {verificationCerts: [x], verificationCertStores", "document 2: spec.parameters.verificationCerts"},
			{`"ca:certs"`, `"ca:none"`, "document 2: spec.parameters.trustPolicyDoc.trustPolicies[0].trustStores[0]"},
			{`level: strict`, `level: audit`, "document 2: spec.parameters.trustPolicyDoc.trustPolicies[0].signatureVerification.level"},
		},
		executorBase: {
			{"kind: Executor", "kind: NamespacedExecutor", "kind"}, {"config.ratify.sh", "config.ratify.deislabs.io", "kind: config.ratify.deislabs.io/v2alpha1 Executor"}, {"v2alpha1", "v1beta1", "kind: config.ratify.sh/v1beta1 Executor"}, {"[a.io]", "[]", "spec.scopes: is empty"}, {"[a.io]", `["*"]`, "spec.scopes[0]"}, {"[a.io]", `["a.io/x:1"]`, "spec.scopes[0]"},
			{"[a.io]", "[registry-1.docker.io]", `spec.scopes[0]: "registry-1.docker.io" matches nothing here`}, {"[a.io]", `["*.docker.io"]`, "matches nothing here"},
			{"[a.io]", "[a.io, a.io]", "spec.scopes[1]"}, {"registry-store", "filesystem-oci-store", "spec.stores[0].type"},
			{"parameters: {}}]", "parameters: {caPem: x}}]", "spec.stores[0].parameters.caPem"}, {"parameters: {}}]", "parameters: {credential: {provider: static, username: a}}}]", "spec.stores[0].parameters.credential"},
			{"parameters: {}}]", "parameters: {proxy: x}}]", "spec.stores[0].parameters.proxy: unknown field"}, {"type: cosign", "type: sbom", "spec.verifiers[0].type"},
			{"name: m,", "name: c,", "spec.verifiers[1].name"}, {"type: ca", "type: signingAuthority", "spec.verifiers[1].parameters.certificates[0].type"},
			{"inline: ${fulcio.pem}", "files: [x]", "spec.verifiers[1].parameters.certificates[0].files"}, {"inline: ${fulcio.pem}", "files: ${fulcio.pem}", "certificates[0].files: is a provider outside"}, {"{certificates:", "{scopes: [a.io/x], certificates:", "spec.verifiers[1].parameters.scopes"},
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

// Parts of the bases that rows exchange.
const (
	file     = "keys: [{file: /etc/pki/one.pub}]"
	inline   = "keys: {inline: ${one.pub}}"
	rules    = "threshold: 1, rules: [{verifierName: c}, {verifierName: m}]"
	provider = `apiVersion: config.ratify.deislabs.io/v1beta1
kind: NamespacedKeyManagementProvider
metadata: {name: p, namespace: m}
spec: {type: inline, parameters: {contentType: key, value: ${two.pub}}}
---
`
)

// namespaced is a NamespacedVerifier of a namespace with the key of a provider.
func namespaced(namespace, provider string) string {
	return strings.NewReplacer("kind: Verifier\nmetadata: {name: v}", "kind: NamespacedVerifier\nmetadata: {name: v, namespace: "+namespace+"}", "file: /etc/pki/one.pub", "provider: "+provider).Replace(ratifyBase)
}

// policies are as many trust policies as asked for, in front of others.
func policies(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "{name: p%d, scopes: ['b.io/%d/*'], keys: [{file: /etc/pki/two.pub}]}, ", i, i)
	}
	return out.String()
}

// scopes are as many as asked for.
func scopes(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "b.io/%d, ", i)
	}
	return out.String()
}

// TestRefusedParts exchanges more of each base.
func TestRefusedParts(t *testing.T) {
	const one, parameters = `["*"]`, "spec.parameters.trustPolicies"
	both, err := converttest.Fill("${one.pub}${two.pub}")
	if err != nil {
		t.Fatal(err)
	}
	twoKeys := "keys: {inline: " + strings.Replace(string(both), `""`, "", 1) + "}"
	for base, rows := range map[string][]converttest.Exchange{
		ratifyBase: {
			{"deislabs.io/v1beta1", "sh/v2alpha1", "kind: config.ratify.sh/v2alpha1 Verifier"}, {"Verifier", "Executor", "kind: config.ratify.deislabs.io/v1beta1 Executor"}, {"v1beta1", "v2alpha1", "kind: config.ratify.deislabs.io/v2alpha1 Verifier"}, {ratifyBase, strings.TrimSuffix(provider, "---\n"), "0 Verifiers"},
			{ratifyBase, strings.TrimSuffix(provider, "---\n") + "---\n" + executorBase, "resources of both versions"}, {ratifyBase, ratifyBase + "---\n" + executorBase, "resources of both versions"}, {ratifyBase, provider + provider + ratifyBase, `document 2: metadata.name: "p" is there twice`},
			{ratifyBase, strings.Replace(provider, "config.ratify.deislabs.io/v1beta1", "config.ratify.deislabs.io/v1alpha1", 1) + ratifyBase, "document 1: kind"}, {ratifyBase, strings.Replace(provider, "config.ratify.deislabs.io/v1beta1", "config.ratify.sh/v1beta1", 1) + ratifyBase, "document 1: kind"},
			{ratifyBase, strings.Replace(provider, "parameters: {", "parameters: {more: 1, ", 1) + ratifyBase, "document 1: spec.parameters.more: unknown field"}, {"spec: {", "more: 1\nspec: {", "more: unknown field"}, {"spec: {", "spec: {more: 1, ", "spec.more: unknown field"}, {"Verifier\nmetadata: {name: v}", "NamespacedVerifier\nmetadata: {name: v, namespace: n}", "metadata.namespace: want a string"}, {"Verifier\nmetadata: {name: v}", "NamespacedVerifier\nmetadata: {name: v}", "metadata.namespace: is missing"},
			{"name: cosign", "name: cosign, source: {}", "spec: has an address"}, {"name: cosign", "name: cosign, type: sbom", `spec.name: "sbom"`}, {"trustPolicies: [", "rekorURL: x, trustPolicies: [", "spec.parameters.key"}, {"trustPolicies: [", "more: 1, trustPolicies: [", "spec.parameters.more: unknown field"},
			{ratifyBase[strings.Index(ratifyBase, "[{"):], "[]}}\n", parameters + ": 0 trust policies"}, {"trustPolicies: [", "trustPolicies: [" + policies(200), parameters + ": 201 trust policies"}, {"trustPolicies: [", "trustPolicies: [{name: b, scopes: ['*'], " + file + "}, ", parameters + "[1].scopes[0]"},
			{one, "['a.io/b*', 'a.io/*']", parameters + "[0].scopes[1]"}, {one, "['a.io/b:v1', 'a.io/b:v1']", parameters + "[0].scopes[1]"}, {one, "['a.io/b:*', 'a.io/b:v1']", parameters + "[0].scopes[1]"}, {one, "['A.io/*']", parameters + "[0].scopes[0]"}, {one, "['a.io/*', '*']", parameters + "[0].scopes[1]"},
			{file, file + ", keyless: {certificateIdentity: a, certificateOIDCIssuer: b}", parameters + "[0]: is not exactly one of keys"}, {", " + file, "", parameters + "[0]: is not exactly one of keys"}, {"{file: /etc/pki/one.pub}", "{file: /etc/pki/one.pub, provider: p}", "keys[0]: is not exactly one of provider"},
			{"{file: /etc/pki/one.pub}", "{file: /etc/pki/one.pub, version: x}", "keys[0].name"}, {"one.pub", "fulcio.pem", "keys[0]: a PEM block is of type"}, {"one.pub", "none", "keys[0].file: names the file /etc/pki/none, which"},
			{ratifyBase, strings.Replace(provider, "contentType: key, ", "", 1) + namespaced("m", "m/p"), `document 2: spec.parameters.trustPolicies[0].keys[0].provider: names the provider "m/p" with the contentType "certificate"`},
		},
		ratifyNotationBase: {
			{"verificationCertStores: {ca: {certs: [p]}}", "verificationCertStores: {ca: {certs: []}}", "trustStores[0]: names the store ca:certs"}, {"verificationCertStores: {ca", "verificationCertStores: {tsa", "trustStores[0]: names the store ca:certs"},
			{"value: ${fulcio.pem}", "value: ${one.pub}", "verificationCertStores.ca.certs[0]: a PEM block is of type"}, {"{certs: [p]}", "{certs: p}", "verificationCertStores.ca: want a list"}, {"parameters: {verification", "parameters: {more: 1, verification", "spec.parameters.more: unknown field"},
		},
		executorBase: {
			{"[a.io]", "[" + scopes(200) + "a.io]", "201 scopes"}, {executorBase, executorBase + "---\n" + executorBase, `document 2: spec.scopes[0]: "a.io" is there twice`}, {"[a.io]", `["*.A.io"]`, "spec.scopes[0]"}, {"  stores:", "  more: 1\n  stores:", "spec.more: unknown field"},
			{"name: m,", "", "spec.verifiers[1].name"}, {"threshold: 1", "threshold: -1", "policy.threshold: -1"}, {rules, "threshold: 1", "policy: is no list of rules"}, {rules, "verifierName: c, " + rules, "policy: is no list of rules"}, {"{verifierName: m}]", "{verifierName: c}]", "rules[1].verifierName"},
			{"{verifierName: m}]", "{verifierName: m, threshold: 1}]", "rules[1].rules"}, {"{policy: {threshold", "{more: 1, policy: {threshold", "spec.policyEnforcer.parameters.more: unknown field"}, {"{type: ca, inline: ${fulcio.pem}}", "", "parameters.certificates: has none of the type ca"},
			{"type: ca,", "type: tsa,", "parameters.certificates: has none of the type ca"}, {"type: ca,", "type: [ca],", "certificates[0].type"}, {"inline: ${fulcio.pem}", "inline: {more: x}", "certificates[0].inline.more: unknown field"}, {"inline: ${fulcio.pem}", "inline: {certs: x}", "certificates[0].inline.certs: no PEM block"},
			{"inline: ${fulcio.pem}", "inline: x", "certificates[0].inline: no PEM block"}, {"{certificates:", "{more: 1, certificates:", "verifiers[1].parameters.more: unknown field"}, {"{trustPolicies: [{" + inline, "{more: 1, trustPolicies: [{" + inline, "verifiers[0].parameters.more: unknown field"},
			{"[{" + inline + "}]", "[]", "verifiers[0].parameters.trustPolicies"}, {inline, twoKeys, "trustPolicies[0].keys: 2 keys"}, {inline, inline + ", certificateIdentityRegex: a", "has keys and an identity"}, {inline, inline + ", certificateOIDCIssuer: a", "has keys and an identity"}, {inline, inline + ", certificateOIDCIssuerRegex: a", "has keys and an identity"},
			{"{certificates:", `{scopes: ["*", a.io], certificates:`, "verifiers[1].parameters.scopes"}, {"parameters: {}}]", "parameters: {caBase64: x}}]", "spec.stores[0].parameters.caPem"}, {"parameters: {}}]", "parameters: {}}, {type: other}]", "spec.stores[1].type"},
			{"parameters: {}}]", "parameters: {credential: {provider: azure, clientID: a}}}]", "spec.stores[0].parameters.credential"}, {"parameters: {}}]", "parameters: {credential: {provider: azure, tenantID: a}}}]", "spec.stores[0].parameters.credential"},
		},
	} {
		if err := converttest.Refused(base, rows); err != nil {
			t.Error(err)
		}
	}
}

// TestAllProblems reports all problems, and none that merely follows from another.
func TestAllProblems(t *testing.T) {
	const parameters = "parameters: {trustPolicies: [{" + inline + "}]}"
	for _, row := range []struct {
		reason, base, found, instead string
		parts                        []string
	}{
		{"a document that cannot be read", ratifyBase, "kind: Verifier", "kind: 1", []string{"kind: want a string"}},
		{"a document of another kind", ratifyBase, "Verifier", "Store", []string{"kind: config.ratify.deislabs.io/v1beta1 Store"}},
		{"a Verifier that cannot be read", ratifyBase, "name: cosign", "name: 1", []string{"spec.name: want a string"}},
		{"what cosign cannot read", ratifyBase, "trustPolicies: [", "trustPolicies: 1, other: [", []string{"spec.parameters.trustPolicies: want a list"}},
		{"what notation cannot read", ratifyNotationBase, "trustPolicyDoc: {", "trustPolicyDoc: 1, other: {", []string{"document 2: spec.parameters.trustPolicyDoc: want an object"}},
		{"a file that is not there, and the next key", ratifyBase, "file: /etc/pki/one.pub", "file: /etc/pki/none}, {provider: x, name: z", []string{"keys[0].file: names the file", "keys[1].name: names one key"}},
		{"a provider that is not there", ratifyBase, "file: /etc/pki/one.pub", "provider: x", []string{`keys[0].provider: names the provider "x"`}},
		{"a provider of certificates that is not there", ratifyNotationBase, "[p]", "[q]", []string{`ca.certs[0]: names the provider "q"`}},
		{"a provider of something else", ratifyNotationBase, "value:", "contentType: key, value:", []string{`certs[0]: names the provider "p" with the contentType "key"`}},
		{"a provider that cannot be read, and is there twice", ratifyBase, "apiVersion", provider + strings.Replace(provider, "contentType: key", "contentType: 1", 1) + "apiVersion", []string{"document 2: spec.parameters.contentType: want a string", `document 2: metadata.name: "p" is there twice`}},
		{"an Executor that cannot be read", executorBase, "[a.io]", "1", []string{"spec.scopes: want a list"}},
		{"an enforcer that cannot be read", executorBase, "{policy: {" + rules + "}}", "1", []string{"spec.policyEnforcer.parameters: want an object"}},
		{"an enforcer that is none", executorBase, "{type: threshold-policy, parameters: {policy: {" + rules + "}}}", "1", []string{"spec.policyEnforcer: want an object"}},
		{"a verifier that cannot be read", executorBase, parameters, "parameters: 1", []string{"spec.verifiers[0].parameters: want an object"}},
		{"another that cannot be read", executorBase, "parameters: {certificates: [{type: ca, inline: ${fulcio.pem}}]}", "parameters: 1", []string{"spec.verifiers[1].parameters: want an object"}},
		{"a verifier of another type", executorBase, "type: cosign", "type: sbom", []string{`spec.verifiers[0].type: "sbom"`}},
		{"a certificate's type that cannot be read", executorBase, "type: ca,", "type: 1,", []string{"certificates[0].type: want a string"}},
	} {
		if !strings.Contains(row.base, row.found) {
			t.Errorf("%s: the base has no %q", row.reason, row.found)
		}
		if err := converttest.ExpectRefusal(strings.Replace(row.base, row.found, row.instead, 1), row.parts...); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

// TestAccepted converts each base with one thing exchanged, and finds it in the
// output.
func TestAccepted(t *testing.T) {
	const one, identity = `["*"]`, "certificateIdentity: a, certificateOIDCIssuer: b"
	const third = ", {name: x, type: cosign, parameters: {trustPolicies: [{keys: {inline: ${two.pub}}}]}}]\n  policyEnforcer:"
	keyed := strings.Replace(ratifyBase, "file: /etc/pki/one.pub", "provider: p", 1)
	for base, rows := range map[string][]converttest.Exchange{
		ratifyBase: {
			{"", "", "kind: ImageValidatingPolicy\nmetadata:\n  name: ratify-a\n"}, {"", "", "[attestors.key_1]) >= 1"}, {"", "", "without: ratify-unmatched"}, {"", "", "without: insecureIgnore"}, {one, "['a.io/*']", "name: ratify-unmatched\n"}, {one, "['a.io/b:v1', 'a.io/b:v10']", "name: ratify-a\n"}, {one, "['a.io/b:v10', 'a.io/b:v1']", "name: ratify-a\n"}, {one, "['a.io/*']", "name.matches(r'^a\\.io/')"},
			{one, "['a.io/b:v1', 'a.io/c:*', 'index.docker.io/d:*']", "name.matches(r'^a\\.io/b:v1$') || name.matches(r'^a\\.io/c:') || name.matches(r'^docker\\.io/d:')"}, {"trustPolicies: [", "trustPolicies: [" + policies(199), "name: ratify-p198\n"}, {"trustPolicies: [", "trustPolicies: [" + policies(1), `!name.matches(r'^b\.io/0/')`},
			{"kind: Verifier\nmetadata: {name: v}", "kind: NamespacedVerifier\nmetadata: {name: v, namespace: m}", "name: ratify-a\n  namespace: m\n"}, {"kind: Verifier\nmetadata: {name: v}", "kind: Verifier\nmetadata: {name: v, namespace: m}", "without: namespace: m"}, {"name: cosign", "name: other, type: cosign", "name: ratify-a\n"},
			{"name: a,", "name: a, version: 1.0.0,", "name: ratify-a\n"}, {"name: a,", "name: a, tLogVerify: false,", "insecureIgnoreTlog: true\n"}, {"name: a,", "name: a, tLogVerify: true,", "without: insecureIgnore"}, {"name: a,", "name: a, rekorURL: 'https://x',", "url: https://x\n"},
			{file, "keys: [{file: /etc/pki/one.pub}, {file: /etc/pki/two.pub}]", "[attestors.key_1, attestors.key_2]) >= 1"}, {file, "keyless: {certificateIdentity: a, certificateOIDCIssuer: b}", "- issuer: b\n              subject: a\n"}, {file, "keyless: {certificateIdentity: a, certificateOIDCIssuer: b}", "without: insecureIgnore"},
			{file, "keyless: {ctLogVerify: false, certificateIdentity: a, certificateOIDCIssuer: b}", "insecureIgnoreSCT: true\n"}, {file, "keyless: {ctLogVerify: true, certificateIdentity: a, certificateOIDCIssuer: b}", "without: insecureIgnore"},
			{ratifyBase, strings.NewReplacer("Namespaced", "", ", namespace: m", "").Replace(provider) + keyed, "[attestors.key_1]) >= 1"},
		},
		ratifyNotationBase: {
			{"", "", "name: ratify-a\n"}, {"name: notation", "name: notaryv2", "name: ratify-a\n"}, {"value:", "contentType: certificate, value:", "name: ratify-a\n"}, {"{ca: {certs: [p]}}", "{ca: {certs: [p, p]}}", "name: ratify-a\n"},
		},
		executorBase: {
			{"", "", "name: e\n"}, {"", "", "[attestors.c]) >= 1 || verifyImageSignatures(image, [attestors.m]) >= 1"}, {"", "", "without: credentials"}, {"", "", "without: concurrency"}, {"", "", "without: userAgent"}, {"", "", "without: no rule of the threshold policy"}, {"", "", "without: insecureIgnore"}, {"", "", "without: tsaCerts"},
			{"[a.io]", "[" + scopes(199) + "a.io]", "name: e\n"}, {"[a.io]", "['*.io', a.io, a.io/x]", `&& !name.matches(r'^a\.io/')`}, {"  stores:", "  concurrency: 1\n  stores:", "concurrency."}, {"threshold: 1", "threshold: 2", "[attestors.c]) >= 1 && verify"},
			{"threshold: 1, ", "", "[attestors.c]) >= 1 && verify"}, {"]\n  policyEnforcer:", third, "no rule of the threshold policy names it"}, {"]\n  policyEnforcer:", third, "without: - name: x\n"}, {"parameters: {}}]", "parameters: {plainHttp: true}}]", "allowInsecureRegistry: true\n"}, {"parameters: {}}]", "parameters: {plainHttp: true}}]", "without: providers"},
			{"parameters: {}}]", "parameters: {credential: {provider: azure}}}, {type: registry-store, parameters: {plainHttp: true}}]", "allowInsecureRegistry: true\n    providers:\n      - azure\n"}, {"parameters: {}}]", "parameters: {userAgent: x}}]", "userAgent"}, {"parameters: {}}]", "parameters: {maxBlobBytes: 1}}]", "userAgent"},
			{"parameters: {}}]", "parameters: {maxManifestBytes: 1}}]", "userAgent"}, {"parameters: {}}]", "parameters: {allowCosignTag: true}}]", "userAgent"}, {"type: ca, ", "", "certs:\n"}, {"{type: ca, inline: ${fulcio.pem}}", "{type: ca, inline: ${fulcio.pem}}, {type: tsa, inline: {certs: ${fulcio.pem}}}", "tsaCerts:\n"},
			{"{certificates:", `{scopes: ["*"], certificates:`, "name: e\n"}, {"{certificates:", `{scopes: [a.io], trustedIdentities: ["*"], certificates:`, "name: e\n"}, {inline, inline + ", scopes: [a.io]", "name: e\n"}, {inline, inline + ", ignoreTLog: true", "insecureIgnoreTlog: true\n"}, {inline, "ignoreCTLog: true, " + identity, "insecureIgnoreSCT: true\n"},
			{inline, identity, "- issuer: b\n              subject: a\n"}, {inline, identity, "without: matched against the whole"}, {inline, "certificateIdentityRegex: a, certificateOIDCIssuerRegex: b", "matched against the whole"},
		},
		strings.NewReplacer("]\n  policyEnforcer:", third, rules, "threshold: 2, rules: [{verifierName: c}, {verifierName: m}, {verifierName: x}]").Replace(executorBase): {
			{"", "", "].filter(met, met).size() >= 2"}, {"threshold: 2", "threshold: 3", "[attestors.c]) >= 1 && verify"}, {"threshold: 2", "threshold: 1", "[attestors.c]) >= 1 || verify"},
		},
	} {
		if err := converttest.Accepted(base, rows); err != nil {
			t.Error(err)
		}
	}
}

// TestAskedFor lists the fields that are converted only on request.
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

// TestProviders resolves a provider's name as Ratify does: that of the cluster by its name, and that of a
// verifier's own namespace by namespace/name.
func TestProviders(t *testing.T) {
	ofCluster := strings.NewReplacer("Namespaced", "", ", namespace: m", "").Replace(provider)
	older := strings.Replace(provider, "Namespaced", "", 1)
	ofOther := strings.Replace(provider, "namespace: m", "namespace: dev", 1)
	byCluster := func(name string) string {
		return strings.Replace(ratifyBase, "file: /etc/pki/one.pub", "provider: "+name, 1)
	}
	const (
		accepted = "[attestors.key_1]) >= 1"
		absent   = "which the file does not hold for this verifier"
	)
	for _, row := range []struct{ reason, text, want string }{
		{"one of the verifier's namespace", provider + namespaced("m", "m/p"), accepted},
		{"one of the verifier's namespace, without it", provider + namespaced("m", "p"), absent},
		{"one of another namespace", ofOther + namespaced("m", "dev/p"), absent},
		{"one of another namespace, without it", ofOther + namespaced("m", "p"), absent},
		{"another namespace's of the same name", ofOther + namespaced("m", "m/p"), absent},
		{"the verifier's own among two of the same name", ofOther + provider + namespaced("m", "m/p"), accepted},
		{"one of the cluster", ofCluster + namespaced("m", "p"), accepted},
		{"one of the cluster by a namespace", ofCluster + namespaced("m", "m/p"), absent},
		{"an older one by its namespace", older + namespaced("m", "m/p"), absent},
		{"an older one by its name", older + namespaced("m", "p"), accepted},
		{"one of the cluster for the cluster", ofCluster + byCluster("p"), accepted},
		{"an older one for the cluster", older + byCluster("m/p"), accepted},
		{"one of a namespace for the cluster", provider + byCluster("m/p"), absent},
		{"one of a namespace for the cluster, without it", provider + byCluster("p"), absent},
		{"one of a namespace for a Verifier that names one, which has no effect", provider + strings.Replace(byCluster("m/p"), "{name: v}", "{name: v, namespace: m}", 1), absent},
		{"one without its namespace", strings.Replace(provider, ", namespace: m", "", 1) + namespaced("m", "p"), "document 1: metadata.namespace: is missing"},
		{"an older one and one of a namespace by one name", older + provider + namespaced("m", "m/p"), `document 2: metadata.name: "p" is there twice`},
	} {
		check := converttest.Refused
		if row.want == accepted {
			check = converttest.Accepted
		}
		if err := check(ratifyBase, []converttest.Exchange{{ratifyBase, row.text, row.want}}); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
	certificates := strings.NewReplacer("kind: KeyManagementProvider\nmetadata: {name: p}", "kind: NamespacedKeyManagementProvider\nmetadata: {name: p, namespace: m}",
		"kind: Verifier\nmetadata: {name: v}", "kind: NamespacedVerifier\nmetadata: {name: v, namespace: m}", "[p]", "[m/p]").Replace(ratifyNotationBase)
	if err := converttest.Accepted(certificates, []converttest.Exchange{{"", "", "name: ratify-a\n  namespace: m\n"}}); err != nil {
		t.Error(err)
	}
	if err := converttest.Refused(certificates, []converttest.Exchange{{"[m/p]", "[p]", absent}, {"v, namespace: m", "v, namespace: dev", absent}}); err != nil {
		t.Error(err)
	}
}
