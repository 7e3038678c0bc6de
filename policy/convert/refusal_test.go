package convert_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert"
)

// The smallest policies of each format that are carried, in which a row exchanges
// one thing.
const (
	connaisseurBase = `application:
  validators:
  - {name: allow, type: static, approve: true}
  - {name: default, type: cosign, trustRoots: [{name: default, key: ${one.pub}}, {name: two, key: ${two.pub}}]}
  - {name: notary, type: notation, trustRoots: [{name: default, cert: ${fulcio.pem}}]}
  policy:
  - {pattern: "a.io/*"}
  - {pattern: "b.io/*", validator: notary}
  - {pattern: "c.io/*", validator: allow}
`
	notationBase = `{"version": "1.0", "trustPolicies": [{"name": "a", "registryScopes": ["a.io/x"], "signatureVerification": {"level": "strict"},
  "trustStores": ["ca:wabbit"], "trustedIdentities": ["*"]}]}`
	containersBase = `{"default": [{"type": "reject"}], "transports": {"docker": {"a.io": [{"type": "sigstoreSigned", "keyPath": "/etc/pki/one.pub"}]}}}`
	openshiftBase  = `apiVersion: config.openshift.io/v1
kind: ClusterImagePolicy
metadata: {name: a}
spec: {scopes: [a.io], policy: {rootOfTrust: {policyType: PublicKey, publicKey: {keyData: "${base64:one.pub}"}}}}
`
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
	kyvernoBase = `apiVersion: kyverno.io/v1
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
	sigstoreBase = `apiVersion: policy.sigstore.dev/v1beta1
kind: ClusterImagePolicy
metadata: {name: c}
spec:
  images: [{glob: "a.io/**"}]
  authorities: [{key: {data: ${one.pub}}}]
`
)

// exchange is one thing that a base cannot have; problem is what the refusal says.
type exchange struct{ old, new, problem string }

func refusals() map[string][]exchange {
	return map[string][]exchange{
		connaisseurBase: {
			{"application:", "alerting: {}\napplication:", "alerting: alerts are asked for"},
			{"application:", "replicas: 3\napplication:", "replicas: unknown field"},
			{"validator: notary", "validator: nobody", `application.policy[1].validator: names "nobody"`},
			{`{pattern: "a.io/*"}`, `{pattern: "a.io/*", with: {mode: dry}}`, "application.policy[0].with.mode"},
			{`{pattern: "a.io/*"}`, `{pattern: "a.io/*", with: {delegations: [x]}}`, "application.policy[0].with.delegations"},
			{`{pattern: "a.io/*"}`, `{pattern: "a.io/*", with: {trustRoot: three}}`, `application.policy[0].with.trustRoot: names "three"`},
			{`{pattern: "a.io/*"}`, `{pattern: "a.io/*", with: {threshold: 1}}`, "application.policy[0].with: threshold or required"},
			{`{pattern: "a.io/*"}`, `{pattern: "a.io/*", with: {trustRoot: "*", threshold: 3}}`, "application.policy[0].with.threshold: 3"},
			{`{pattern: "a.io/*"}`, `{pattern: "a.io/*", with: {trustRoot: "*", required: [three]}}`, "application.policy[0].with.required[0]"},
			{`{pattern: "a.io/*"}`, `{pattern: "a.io/*", with: {trustRoot: "*", required: [two, two]}}`, "application.policy[0].with.required[1]"},
			{`{pattern: "a.io/*"}`, `{pattern: "a.io/*", with: {verificationLevel: strict}}`, "application.policy[0].with: verificationLevel"},
			{`{pattern: "a.io/*"}`, `{pattern: "a.io/*", surprise: {}}`, "application.policy[0].surprise: unknown field"},
			{`{pattern: "a.io/*"}`, `{pattern: "[ab].io/*"}`, "application.policy[0].pattern"},
			{`{pattern: "a.io/*"}`, `{pattern: "A.io/*"}`, "application.policy[0].pattern"},
			{`{pattern: "a.io/*"}`, `{pattern: ""}`, "application.policy[0].pattern: is empty"},
			{`{pattern: "a.io/*"}`, `{pattern: "b.io/*"}`, "application.policy[1].pattern: \"b.io/*\" stands in application.policy[0] already"},
			{`validator: notary}`, `validator: notary, with: {verifySCT: false}}`, "application.policy[1].with: threshold, required"},
			{`validator: notary}`, `validator: notary, with: {verificationLevel: audit}}`, "application.policy[1].with.verificationLevel"},
			{`validator: notary}`, `validator: notary, with: {verifyTimestamp: afterCertExpiry}}`, "application.policy[1].with.verifyTimestamp"},
			{`validator: allow}`, `validator: allow, with: {verifySCT: false}}`, "application.policy[2].with: a static validator"},
			{"approve: true", "cert: ''", "application.validators[0].approve: is missing"},
			{"type: cosign,", "type: cosign, cert: x,", "application.validators[1].cert"},
			{"type: cosign,", "type: notaryv1,", `application.validators[1].type: "notaryv1"`},
			{"type: cosign,", "type: cosign, auth: {username: a, password: b},", "application.validators[1].auth: a credential"},
			{"type: cosign,", "type: cosign, host: {tuf: x},", "application.validators[1].host.tuf: unknown field"},
			{"type: cosign,", "type: cosign, host: {rekorPubkey: x},", "application.validators[1].host.rekorPubkey: no PEM block"},
			{"type: notation,", "type: notation, host: {rekor: x},", "application.validators[2].host: is given"},
			{"key: ${one.pub}", "key: k8s://ns/key", `application.validators[1].trustRoots[0].key: refers to "k8s://ns/key"`},
			{"key: ${one.pub}", "cert: ${fulcio.pem}", "application.validators[1].trustRoots[0]: is not exactly one of key and keyless"},
			{"key: ${one.pub}", "keyless: {issuer: a}", "application.validators[1].trustRoots[0].keyless: has no subject"},
			{"key: ${one.pub}", "keyless: {issuer: a, subjectRegex: '('}", "application.validators[1].trustRoots[0].keyless: the expression"},
			{"name: two", "name: default", "application.validators[1].trustRoots[1].name"},
			{"cert: ${fulcio.pem}", "key: ${one.pub}", "application.validators[2].trustRoots[0]: is not a cert"},
			{"cert: ${fulcio.pem}", "cert: ${one.pub}", `application.validators[2].trustRoots[0].cert: a PEM block is of type "PUBLIC KEY"`},
			{"  policy:", "  features: {automaticUnchangedApproval: true}\n  policy:", "application.features.automaticUnchangedApproval"},
			{"  policy:", "  features: {namespacedValidation: {mode: all}}\n  policy:", "application.features.namespacedValidation.mode"},
			{"  policy:", "  features: {surprise: true}\n  policy:", "application.features.surprise: unknown field"},
		},
		notationBase: {
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
		},
		containersBase: {
			{`"default": [{"type": "reject"}], `, ``, "default: is missing"}, {`"docker"`, `"atomic"`, "transports.atomic"},
			{`"sigstoreSigned"`, `"signedBy"`, "transports.docker.a.io[0].type: signedBy"}, {`"sigstoreSigned"`, `"hope"`, `transports.docker.a.io[0].type: "hope"`},
			{`"type": "reject"`, `"type": "reject", "keyPath": "x"`, "default[0]: reject has other fields"},
			{`"a.io"`, `"a.io/x*"`, "transports.docker.a.io/x*: is no scope"}, {`"a.io"`, `"*.a.io:5000"`, "is no scope"}, {`"a.io"`, `"a.io/X"`, "is no scope"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/none.pub"`, "transports.docker.a.io[0].keyPath: names the file /etc/pki/none.pub, which cannot be read"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/fulcio.pem"`, `transports.docker.a.io[0].keyPath: a PEM block is of type "CERTIFICATE"`},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyData": "???"`, "transports.docker.a.io[0].keyData: no base64"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPath": "/etc/pki/one.pub", "keyData": "${base64:one.pub}"`, "transports.docker.a.io[0].keyData: stands beside"},
			{`"keyPath": "/etc/pki/one.pub"`, `"keyPaths": ["/etc/pki/one.pub", "/etc/pki/none"]`, "transports.docker.a.io[0].keyPaths[1]"},
			{`"keyPath": "/etc/pki/one.pub"`, `"pki": {}`, "transports.docker.a.io[0].pki"},
			{`, "keyPath": "/etc/pki/one.pub"`, ``, "transports.docker.a.io[0]: is not exactly one of keys and fulcio"},
			{`"keyPath": "/etc/pki/one.pub"`, `"fulcio": {"caPath": "/etc/pki/fulcio.pem", "oidcIssuer": "a", "subjectEmail": "b"}`, "transports.docker.a.io[0].rekorPublicKeyPath: is missing"},
			{`"keyPath": "/etc/pki/one.pub"`, `"rekorPublicKeyPath": "/etc/pki/rekor.pub", "fulcio": {"caPath": "/etc/pki/fulcio.pem", "oidcIssuer": "a"}`, "transports.docker.a.io[0].fulcio: has no subject"},
			{`"keyPath": "/etc/pki/one.pub"`, `"rekorPublicKeyPath": "/etc/pki/rekor.pub", "fulcio": {"oidcIssuer": "a", "subjectEmail": "b"}`, "transports.docker.a.io[0].fulcio.caPath"},
			{`"keyPath"`, `"keypath"`, "transports.docker.a.io[0].keypath: unknown field"},
			{`[{"type": "sigstoreSigned", "keyPath": "/etc/pki/one.pub"}]`, `[]`, "transports.docker.a.io: is empty"},
		},
		openshiftBase: {
			{"openshift.io/v1", "openshift.io/v2", "apiVersion"}, {"ClusterImagePolicy", "ImageContentPolicy", "kind"}, {"{name: a}", "{}", "metadata.name"},
			{"{name: a}", "{name: a, namespace: b}", "metadata.namespace"}, {"[a.io]", "[]", "spec.scopes: is empty"}, {"[a.io]", `["*"]`, "spec.scopes[0]"},
			{"PublicKey", "Hope", "spec.policy.rootOfTrust.policyType"}, {"{keyData:", "{keyring: x, keyData:", "spec.policy.rootOfTrust.publicKey.keyring: unknown field"},
			{"policyType: PublicKey, publicKey: {keyData: \"${base64:one.pub}\"}", "policyType: PKI, pki: {}", "spec.policy.rootOfTrust.pki"},
			{`publicKey: {keyData: "${base64:one.pub}"}`, "pki: {}, publicKey: {keyData: x}", "spec.policy.rootOfTrust: is not exactly one"},
			{"${base64:one.pub}", "${base64:fulcio.pem}", "spec.policy.rootOfTrust.publicKey.keyData"},
			{openshiftBase, openshiftBase + "---\n" + strings.Replace(openshiftBase, "ClusterImagePolicy\nmetadata: {name: a}", "ImagePolicy\nmetadata: {name: b, namespace: c}", 1), "document 2: spec.scopes[0]: \"a.io\" lies within the scope of a ClusterImagePolicy"},
		},
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
		kyvernoBase: {
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
		},
		sigstoreBase: {
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
		},
	}
}

// TestRefused converts each base, and refuses it with one thing exchanged, by path.
func TestRefused(t *testing.T) {
	for base, rows := range refusals() {
		if _, err := convert.Convert([]byte(fill(t, base)), rooted()); err != nil {
			t.Errorf("the base is refused: %v\n%s", err, base)
			continue
		}
		for _, row := range rows {
			text := strings.Replace(base, row.old, row.new, 1)
			if text == base {
				t.Errorf("%s: the base has no %q", row.problem, row.old)
			}
			out, err := convert.Convert([]byte(fill(t, text)), rooted())
			var refusal *convert.Refusal
			if !errors.As(err, &refusal) || len(out) > 0 {
				t.Errorf("%s: no refusal, but %v and %d bytes", row.problem, err, len(out))
				continue
			}
			found := false
			for _, p := range refusal.Problems {
				found = found || strings.Contains(p.Error(), row.problem)
				if p.Found == "" || p.Do == "" {
					t.Errorf("%s: what was found or what to do is missing in %q", row.problem, p.Error())
				}
			}
			if !found {
				t.Errorf("want %q in\n%v", row.problem, err)
			}
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
		{"a file without a folder", containersBase, convert.Options{DropSignedIdentity: true}, "transports.docker.a.io[0].keyPath: names the file /etc/pki/one.pub: give --root"},
		{"an identity that is compared by default", containersBase, convert.Options{Files: os.DirFS("testdata/root")}, "transports.docker.a.io[0].signedIdentity: is left out, and so is matchRepoDigestOrExact"},
		{"an identity that is said", strings.Replace(containersBase, `"keyPath"`, `"signedIdentity": {"type": "matchExact"}, "keyPath"`, 1), convert.Options{Files: os.DirFS("testdata/root")}, `transports.docker.a.io[0].signedIdentity: is "matchExact"`},
		{"OpenShift's identity", openshiftBase, convert.Options{}, "spec.policy.signedIdentity"},
		{"a trust store without a folder", notationBase, convert.Options{}, "trustPolicies[0].trustStores[0]: names the trust store ca:wabbit: give --root"},
		{"a key's file without a folder", ratifyBase, convert.Options{}, "spec.parameters.trustPolicies[0].keys[0].file"},
	} {
		_, err := convert.Convert([]byte(fill(t, row.text)), row.options)
		if err == nil || !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: want %q, got %v", row.reason, row.problem, err)
		}
	}
}

// TestUnreadable has what is no policy at all.
func TestUnreadable(t *testing.T) {
	for _, row := range []struct{ reason, text, problem string }{
		{"nothing", "", "no policy"}, {"comments", "# nothing\n---\n", "no policy"}, {"a list", "- a", "no object"}, {"no text", "\xff\xfe", "UTF-8"},
		{"unknown", "a: b", "what policy is this?"}, {"another kind", "apiVersion: v1\nkind: Pod", "what policy is this?"},
		{"a key twice", `{"default": [], "default": []}`, `already set`}, {"no YAML", "a: [", "document 1"},
		{"several formats", containersBase + "\n---\n" + kyvernoBase, "several formats"}, {"two of one a file", notationBase + "\n---\n" + notationBase, "2 documents"},
		{"too many documents", strings.Repeat("a: b\n---\n", 101), "more than 100 documents"}, {"too much", strings.Repeat(" ", convert.MaxInput+1), "is larger than"},
		{"another type", strings.Replace(notationBase, `["*"]`, `"*"`, 1), "trustPolicies.trustedIdentities: want a list, found string"},
	} {
		_, err := convert.Convert([]byte(fill(t, row.text)), rooted())
		if err == nil || !strings.Contains(err.Error(), row.problem) {
			t.Errorf("%s: want %q, got %v", row.reason, row.problem, err)
		}
	}
}
