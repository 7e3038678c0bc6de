package connaisseur_test

import (
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
