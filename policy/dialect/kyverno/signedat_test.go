package kyverno_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify"
)

const signedScan = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: fresh-scan}
spec:
  validationFailureAction: Enforce
  rules:
  - name: scanned
    match: {any: [{resources: {kinds: [Pod]}}]}
    verifyImages:
    - imageReferences: ["*"]
      attestations:
      - type: https://example.com/scan/v1
        attestors: [{entries: [{keys: {kms: "awskms:///alias/scanner"}}]}]
        conditions: [{all: [CONDITION]}]
`

// TestSignedAt: conditions on the verified time of a statement, which its author cannot write.
func TestSignedAt(t *testing.T) {
	const (
		fresh    = `{key: "{{ time_since('', quaymaster.signedAt, '') }}", operator: LessThanOrEquals, value: 72h}`
		cool     = `{key: "{{ time_since('', quaymaster.signedAt, '') }}", operator: GreaterThanOrEquals, value: 72h}`
		byLog    = `{key: "{{ quaymaster.timeSource }}", operator: Equals, value: log}`
		standIn  = `{key: "{{ quaymaster.signedAt || '2020-01-01T00:00:00Z' }}", operator: Equals, value: "2020-01-01T00:00:00Z"}`
		misspelt = `{key: "{{ quaymaster.signdAt || 'none' }}", operator: Equals, value: none}`
		own      = `{key: "{{ clean }}", operator: Equals, value: true}`
		forged   = `{"clean":true,"quaymaster":{"signedAt":"2020-01-01T00:00:00Z","timeSource":"log"}}`
	)
	statement := func(predicate string, ago time.Duration, source verify.TimeSource) verify.Fact {
		fact := verify.Fact{
			Role: attest.Attestation, Signer: verify.Signer{KeyFingerprint: "scanner"}, TimeSource: source,
			Statement: &attest.Statement{PredicateType: "https://example.com/scan/v1", Predicate: []byte(predicate)},
		}
		if source != "" {
			fact.SignedAt = time.Now().Add(-ago)
		}
		return fact
	}
	list := func(facts ...verify.Fact) []verify.Fact { return facts }
	const clean = `{"clean":true}`
	for _, c := range []struct {
		reason, condition string
		facts             []verify.Fact
		want              policy.Result
		code              policy.Code
	}{
		{"a fresh scan", fresh, list(statement(clean, time.Hour, verify.LogTime)), policy.Pass, policy.Verified},
		{"a stale scan", fresh, list(statement(clean, 73*time.Hour, verify.LogTime)), policy.Fail, policy.ConditionFailed},
		{"a fresh timestamp", fresh, list(statement(clean, time.Hour, verify.StampTime)), policy.Pass, policy.Verified},
		{"a fresh time of another source", byLog, list(statement(clean, time.Hour, verify.StampTime)), policy.Fail, policy.ConditionFailed},
		{"a time of the log", byLog, list(statement(clean, time.Hour, verify.LogTime)), policy.Pass, policy.Verified},
		{"an old scan", cool, list(statement(clean, 73*time.Hour, verify.LogTime)), policy.Pass, policy.Verified},
		{"a scan that claims to be old", cool, list(statement(forged, time.Hour, verify.LogTime)), policy.Fail, policy.ConditionFailed},
		{"a scan that claims a time and has none", cool, list(statement(forged, 0, "")), policy.Indeterminate, policy.NoVerifiedTime},
		{"no verified time", fresh, list(statement(clean, 0, "")), policy.Indeterminate, policy.NoVerifiedTime},
		{"the signer's own time", fresh, list(statement(clean, time.Hour, verify.OwnTime)), policy.Indeterminate, policy.NoVerifiedTime},
		{"no verified time, with a default", standIn, list(statement(clean, 0, "")), policy.Indeterminate, policy.NoVerifiedTime},
		{"a misspelt name, with a default", misspelt, list(statement(clean, time.Hour, verify.LogTime)), policy.Fail, policy.ConditionFailed},
		{"no verified time, where none is read", own, list(statement(clean, 0, "")), policy.Pass, policy.Verified},
		{"a fresh scan next to a stale one", fresh, list(statement(clean, 99*time.Hour, verify.LogTime), statement(`{}`, time.Hour, verify.LogTime)), policy.Pass, policy.Verified},
		{
			"a scan that is logged again", fresh, list(statement(clean, 99*time.Hour, verify.LogTime), statement(clean, time.Hour, verify.LogTime)),
			policy.Fail, policy.ConditionFailed,
		},
	} {
		p, err := newCompiler(t, nil).Compile([]byte(strings.Replace(signedScan, "CONDITION", c.condition, 1)), "test")
		if err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}
		set, err := set.New(p)
		if err != nil {
			t.Fatal(err)
		}
		plan := set.Plan(t.Context(), pod("prod"), func([]policy.Extractor) ([]policy.Image, error) {
			return []policy.Image{container("ghcr.io/org/app:v1")}, nil
		})
		decision := decide.Check(&plan.Checks[0], func(policy.Question) policy.Answer { return policy.Answer{Facts: c.facts} })
		if decision.Result != c.want || decision.Reasons[0].Code != c.code {
			t.Errorf("%s: %s %+v; want %s %s", c.reason, decision.Result, decision.Reasons, c.want, c.code)
		}
	}
}

// TestSignedAtElsewhere: the variable is known in the conditions of attestations alone, and its name is
// taken.
func TestSignedAtElsewhere(t *testing.T) {
	good := strings.Replace(signedScan, "CONDITION", `{key: "{{ quaymaster.signedAt }}", operator: NotEquals, value: x}`, 1)
	for reason, text := range map[string]string{
		"a precondition":              strings.Replace(good, "    verifyImages:", "    preconditions: {all: [{key: \"{{ quaymaster.signedAt }}\", operator: Equals, value: x}]}\n    verifyImages:", 1),
		"a context entry of the name": strings.Replace(good, "    verifyImages:", "    context: [{name: quaymaster, variable: {value: x}}]\n    verifyImages:", 1),
		"an attestation of the name":  strings.Replace(good, "type: https", "name: quaymaster\n        type: https", 1),
		"conditions of denial": strings.Replace(good, "      attestations:\n",
			"      validate: {deny: {conditions: {any: [{key: \"{{ quaymaster.signedAt }}\", operator: Equals, value: x}]}}}\n      attestations:\n", 1),
	} {
		if _, err := newCompiler(t, nil).Compile([]byte(text), "test"); err == nil || !strings.Contains(err.Error(), "quaymaster") {
			t.Errorf("%s: %v", reason, err)
		}
	}
	if _, err := newCompiler(t, nil).Compile([]byte(good), "test"); err != nil {
		t.Error(err)
	}
}
