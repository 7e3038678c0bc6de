package connaisseur_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/internal/converttest"
)

// The smallest policy that is carried, in which a row exchanges one thing.
const base = `application:
  validators:
  - {name: allow, type: static, approve: true}
  - {name: default, type: cosign, trustRoots: [{name: default, key: ${one.pub}}, {name: two, key: ${two.pub}}]}
  - {name: notary, type: notation, trustRoots: [{name: default, cert: ${fulcio.pem}}]}
  policy:
  - {pattern: "a.io/*"}
  - {pattern: "b.io/*", validator: notary}
  - {pattern: "c.io/*", validator: allow}
`

// TestRefused converts the base, and refuses it with one thing exchanged, by path.
func TestRefused(t *testing.T) {
	if err := converttest.Refused(base, []converttest.Exchange{
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
		{`{pattern: "a.io/*"}`, `{pattern: "registry-1.docker.io/*:*"}`, `application.policy[0].pattern: "registry-1.docker.io/*:*" matches nothing here`},
		{`{pattern: "a.io/*"}`, `{pattern: "registry-?.docker.io/acme/*"}`, "matches nothing here"},
		{`{pattern: "a.io/*"}`, `{pattern: "registry*/acme/*"}`, "matches nothing here"},
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
	}); err != nil {
		t.Error(err)
	}
}

// Parts of the base that rows exchange.
const (
	first    = `{pattern: "a.io/*"}`
	second   = "validator: notary}"
	static   = "validator: allow}"
	features = "  policy:"
	single   = "key: ${one.pub}"
	pem      = "cert: ${fulcio.pem}"
)

// rules are as many as asked for.
func rules(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "  - {pattern: 'd.io/%d/*', validator: allow}\n", i)
	}
	return out.String()
}

// TestRefusedParts exchanges more of the base.
func TestRefusedParts(t *testing.T) {
	if err := converttest.Refused(base, []converttest.Exchange{
		{"application:", "application:\n  alerting: {}", "alerting: alerts are asked for"}, {"  policy:\n", "  policy:\n" + rules(198), "application.policy: 201 rules"}, {base[strings.Index(base, "  policy:"):], "  policy: []\n", "application.policy: 0 rules"}, {base, base + "---\n" + base, "2 documents"},
		{first, `{pattern: "a.io/{b,c}"}`, "policy[0].pattern"}, {first, `{pattern: "a.io/b\\c"}`, "policy[0].pattern"}, {first, `{pattern: "a.io/*", validator: x}`, `policy[0].validator: names "x"`}, {static, "validator: allow, with: {trustRoot: x}}", "policy[2].with: a static"},
		{static, "validator: allow, with: {threshold: 1}}", "policy[2].with: a static"}, {static, "validator: allow, with: {required: [x]}}", "policy[2].with: a static"}, {static, "validator: allow, with: {verifyInTransparencyLog: true}}", "policy[2].with: a static"},
		{static, "validator: allow, with: {verificationLevel: strict}}", "policy[2].with: a static"}, {static, "validator: allow, with: {verifyTimestamp: always}}", "policy[2].with: a static"}, {"type: cosign,", "type: cosign, auth: {password: x},", "validators[1].auth: a credential"}, {"type: cosign,", "type: cosign, auth: {username: x},", "validators[1].auth: a credential"}, {"type: cosign,", "type: cosign, auth: {registry: x},", "validators[1].auth: a credential"},
		{"type: cosign,", "type: cosign, host: {ctLogPubkey: x},", "host.ctLogPubkey: no PEM block"}, {"type: cosign,", "type: cosign, host: {fulcioCert: x},", "host.fulcioCert: no PEM block"}, {first, `{pattern: "a.io/*", with: {verifyTimestamp: always}}`, "policy[0].with: verificationLevel"},
		{first, `{pattern: "a.io/*", with: {trustRoot: default, required: [default]}}`, "policy[0].with: threshold or required"}, {first, `{pattern: "a.io/*", with: {trustRoot: "*", threshold: 0}}`, "with.threshold: 0"}, {first, `{pattern: "a.io/*", with: {trustRoot: "*", threshold: 3, required: [two]}}`, "with.threshold: 3"},
		{single, "cert: ${fulcio.pem}, key: ${one.pub}", "trustRoots[0]: is not exactly one of key"}, {single, "tsCert: ${fulcio.pem}, key: ${one.pub}", "trustRoots[0]: is not exactly one of key"}, {single, "key: ${one.pub}, keyless: {issuer: a, subject: b}", "trustRoots[0]: is not exactly one of key"},
		{"{name: default, key", "{key", "with.trustRoot: names \"default\""}, {second, "validator: notary, with: {threshold: 1}}", "policy[1].with: threshold, required"}, {second, "validator: notary, with: {required: [x]}}", "policy[1].with: threshold, required"},
		{second, "validator: notary, with: {verifyInTransparencyLog: true}}", "policy[1].with: threshold, required"}, {pem, pem + ", key: ${one.pub}", "validators[2].trustRoots[0]: is not a cert"}, {pem, pem + ", keyless: {issuer: a, subject: b}", "validators[2].trustRoots[0]: is not a cert"}, {pem, "tsCert: ${fulcio.pem}", "validators[2].trustRoots[0]: is not a cert"},
		{pem, pem + ", tsCert: x", "trustRoots[0].tsCert: no PEM block"}, {second, "validator: notary, with: {trustRoot: x}}", `policy[1].with.trustRoot: names "x"`},
	}); err != nil {
		t.Error(err)
	}
	every := strings.Replace(base, first, `{pattern: "a.io/*", with: {trustRoot: "*"}}`, 1)
	if err := converttest.Refused(every, []converttest.Exchange{{"{name: two, key", "{key", "trustRoots[1].name: is missing"}}); err != nil {
		t.Error(err)
	}
}

// TestAllProblems reports all problems, and none that merely follows from another.
func TestAllProblems(t *testing.T) {
	exchanged := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(base) }
	for _, row := range []struct {
		reason, text string
		parts        []string
	}{
		{"several documents", base + "---\n" + base, []string{"2 documents"}},
		{"what cannot be read", base[:strings.Index(base, features)] + "  policy: 1\n", []string{"application.policy: want a list"}},
		{"a pattern, and a rule", exchanged(first, `{pattern: "[ab].io/*"}`, second, "validator: nobody}"), []string{"policy[0].pattern", `policy[1].validator: names "nobody"`}},
		{"a host, and a trust root", exchanged("type: cosign,", "type: cosign, host: 1,", single, "key: x"), []string{"validators[1].host: want an object", "trustRoots[0].key: no PEM block"}},
	} {
		if err := converttest.ExpectRefusal(row.text, row.parts...); err != nil {
			t.Errorf("%s: %v", row.reason, err)
		}
	}
}

// TestAccepted converts the base with one thing exchanged, and finds it in the
// output.
func TestAccepted(t *testing.T) {
	const log, every = `{pattern: "a.io/*", with: {verifyInTransparencyLog: %}}`, `{pattern: "a.io/*", with: {trustRoot: "*"%}}`
	with := func(text, value string) string { return strings.Replace(text, "%", value, 1) }
	const keyless = "keyless: {issuer: a, subject: b}"
	if err := converttest.Accepted(base, []converttest.Exchange{
		{"", "", "name: connaisseur-a-io-any\n"}, {"", "", "name: connaisseur-unmatched\n"}, {"", "", "without: connaisseur-c-io"}, {"", "", "failurePolicy: Fail\n  validationActions:\n    - Deny\n"}, {"", "", "[attestors.default]) >= 1"}, {"", "", "without: insecureIgnore"}, {"", "", "without: credentials"},
		{"", "", "mutateDigest: true\n"}, {"", "", "without: kubernetes"}, {"", "", "without: logLevel"}, {"", "", "without: .cache"}, {"", "", "without: namespaceSelector"}, {"", "", "automaticChildApproval"}, {"", "", "without: resourceValidationMode"}, {"", "", "without: Left out, since no rule names it"}, {"", "", "without: tsaCerts"},
		{first, `{pattern: "*"}`, "without: connaisseur-unmatched"}, {first, `{pattern: "*:*"}`, "without: connaisseur-unmatched"}, {first, `{pattern: "*/*"}`, "without: connaisseur-unmatched"}, {first, `{pattern: "*/*:*"}`, "without: connaisseur-unmatched"}, {first, `{pattern: "*.*"}`, "connaisseur-unmatched"}, {first, `{pattern: "/"}`, "without: connaisseur-unmatched"},
		{first, `{pattern: "a.io/B*"}`, "name: connaisseur-a-io-b-any\n"}, {first, `{pattern: "A*"}`, "name: connaisseur-a-any\n"}, {"  policy:\n", "  policy:\n" + rules(197), "name: connaisseur-a-io-any\n"}, {base, strings.ReplaceAll(strings.TrimPrefix(base, "application:\n"), "\n  ", "\n")[2:], "name: connaisseur-a-io-any\n"},
		{"application:", "kubernetes: {webhook: {failurePolicy: Ignore}}\napplication:", "failurePolicy: Ignore\n"}, {"application:", "kubernetes: {webhook: {failurePolicy: Fail}}\napplication:", "without: failurePolicy: Ignore"}, {"application:", "kubernetes: {}\napplication:", "kubernetes (how"}, {"application:", "application:\n  logLevel: INFO", "application.logLevel"},
		{features, "  features: {detectionMode: true}\n" + features, "- Warn\n"}, {features, "  features: {detectionMode: true}\n" + features, "without: - Deny"}, {features, "  features: {cache: {}}\n" + features, "application.features.cache"}, {features, "  features: {automaticUnchangedApproval: false}\n" + features, "name: connaisseur-a-io-any\n"},
		{features, "  features: {automaticChildApproval: true}\n" + features, "automaticChildApproval"}, {features, "  features: {automaticChildApproval: false}\n" + features, "without: automaticChildApproval"}, {features, "  features: {resourceValidationMode: podsOnly}\n" + features, "without: resourceValidationMode"}, {features, "  features: {resourceValidationMode: all}\n" + features, "resourceValidationMode"},
		{features, "  features: {namespacedValidation: {}}\n" + features, "operator: NotIn\n          values:\n            - ignore\n"}, {features, "  features: {namespacedValidation: {enabled: true, mode: validate}}\n" + features, "operator: In\n          values:\n            - validate\n"}, {features, "  features: {namespacedValidation: {enabled: false}}\n" + features, "without: namespaceSelector"},
		{first, `{pattern: "a.io/*", with: {mode: mutate}}`, "mutateDigest: true\n"}, {first, `{pattern: "a.io/*", with: {mode: insecureValidateOnly}}`, "mutateDigest: false\n    verifyDigest: false\n    required: true\n"}, {first, `{pattern: "a.io/*", validator: default}`, "[attestors.default]) >= 1"},
		{first, `{pattern: "a.io/*", with: {trustRoot: two}}`, "[attestors.two]) >= 1"}, {first, with(every, ""), "[attestors.default, attestors.two]) >= 2"}, {first, with(every, ""), "without: (image, [])"}, {first, with(every, ", threshold: 1"), "[attestors.default, attestors.two]) >= 1"}, {first, with(every, ", threshold: 2"), "[attestors.default, attestors.two]) >= 2"}, {first, with(every, ", required: [two]"), "[attestors.two]) >= 1"},
		{first, with(every, ", required: [two]"), "without: [attestors.default, attestors.two]"}, {first, with(every, ", required: [two], threshold: 1"), "without: [attestors.default, attestors.two]"}, {first, with(every, ", required: [two], threshold: 2"), "[attestors.default, attestors.two]) >= 2"}, {first, with(every, ", required: [two], threshold: 2"), "[attestors.two]) >= 1"},
		{first, with(every, ", required: [two, default]"), "[attestors.two, attestors.default]) >= 2"}, {first, with(log, "false"), "insecureIgnoreTlog: true\n"}, {first, with(log, "true"), "without: insecureIgnore"}, {first, `{pattern: "a.io/*", with: {verifySCT: false}}`, "insecureIgnoreSCT: true\n"}, {first, `{pattern: "a.io/*", with: {verifySCT: true}}`, "without: insecureIgnore"},
		{"type: cosign,", "type: cosign, host: {rekor: 'https://x', rekorPubkey: ${rekor.pub}, ctLogPubkey: ${ct.pub}},", "rekorPubKey:"}, {"type: cosign,", "type: cosign, host: {ctLogPubkey: ${ct.pub}},", "ctLogPubKey:"}, {"trustRoots: [{name: default, key: ${one.pub}}", "host: {fulcioCert: ${fulcio.pem}}, trustRoots: [{name: default, " + keyless + "}", "roots: |"},
		{single, keyless, "- issuer: a\n              subject: b\n"}, {single, keyless, "without: matched against the whole"}, {single, "keyless: {issuerRegex: a, subjectRegex: b}", "matched against the whole"}, {single, "key: 'awskms:///alias/x'", "kms: awskms:///alias/x\n"}, {"type: cosign,", "type: cosign, auth: {secretName: x},", "secrets:\n      - x\n"},
		{"type: cosign,", "type: cosign, auth: {useKeychain: true},", "providers:\n      - default\n"}, {"type: cosign,", "type: cosign, auth: {},", "without: credentials"}, {"approve: true", "approve: false", "the policy denies images of c.io/*"}, {"approve: true", "approve: false", "mutateDigest: false\n    verifyDigest: false\n    required: false\n"},
		{second, "validator: notary, with: {verificationLevel: strict, verifyTimestamp: always}}", "notary:\n"}, {pem, pem + ", tsCert: ${fulcio.pem}", "tsaCerts:\n"}, {"  policy:", "  - {name: other, type: static, approve: true}\n  policy:", `no rule names it: validator "other"`},
		{second, "validator: notary, with: {trustRoot: '*'}}", "[attestors.notary]) >= 1"},
	}); err != nil {
		t.Error(err)
	}
}
