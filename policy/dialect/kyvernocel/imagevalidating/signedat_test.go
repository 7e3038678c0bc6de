package imagevalidating_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// agePolicy has two attestors with log entries, one without, and an expression in place of EXPRESSION.
const agePolicy = `apiVersion: policies.kyverno.io/v1
kind: ImageValidatingPolicy
metadata: {name: age}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}
  matchImageReferences:
  - glob: HOST/org/*
  attestors:
  - name: builder
    cosign: {key: {data: 'KEY'}}
  - name: reviewer
    cosign: {key: {data: 'STRANGER'}}
  - name: unlogged
    cosign: {key: {data: 'KEY'}, ctlog: {insecureIgnoreTlog: true}}
  attestations:
  - name: sbom
    intoto: {type: https://spdx.dev/Document}
  validations:
  - expression: images.containers.all(image, EXPRESSION)
    message: the age is wrong
`

// stamped is a claim by a signer, made some time ago.
type stamped struct {
	by    *verifytest.Signer
	ago   time.Duration
	noLog bool
	body  string // of an SBOM; a signature if empty
}

func (h *env) stamp(t *testing.T, name string, claims ...stamped) gate.Request {
	t.Helper()
	built := h.signed(t, strings.NewReplacer(" ", "-", ",", "").Replace(name))
	for _, c := range claims {
		claim := verifytest.Claim{Signer: c.by, Time: time.Now().Add(-c.ago), NoLog: c.noLog}
		if c.body != "" {
			put(t, h, built, claim, "https://spdx.dev/Document", json.RawMessage(c.body))
			continue
		}
		if err := h.SignLegacy(built, claim, nil); err != nil {
			t.Fatal(err)
		}
	}
	return pod(t, built.Name)
}

func TestSignedAt(t *testing.T) {
	h := newEnv(t)
	const (
		day     = 24 * time.Hour
		cool    = `time.now() - firstSignedAt(image, [attestors.builder]) >= duration("72h")`
		both    = `time.now() - firstSignedAt(image, [attestors.builder, attestors.reviewer]) >= duration("72h")`
		fresh   = `time.now() - lastSignedAt(image, [attestors.builder]) <= duration("72h")`
		sbom    = `time.now() - lastSignedAt(image, attestations.sbom, [attestors.builder]) <= duration("72h")`
		coolDoc = `time.now() - firstSignedAt(image, attestations.sbom, [attestors.builder]) >= duration("72h")`
		forged  = `{"created":"2020-01-01T00:00:00Z","signedAt":"2020-01-01T00:00:00Z","firstSignedAt":"2020-01-01T00:00:00Z"}`
	)
	builder, reviewer := h.key, h.stranger
	old, young := stamped{by: builder, ago: 4 * day}, stamped{by: builder, ago: day}
	for name, c := range map[string]struct {
		expression string
		claims     []stamped
		answer     gate.Result
		word       string
	}{
		"old enough":                      {cool, []stamped{old}, gate.Allow, ""},
		"too young":                       {cool, []stamped{young}, gate.Deny, "the age is wrong"},
		"signed again":                    {cool, []stamped{old, young}, gate.Allow, ""},
		"an old signature of another":     {cool, []stamped{young, {by: reviewer, ago: 9 * day}}, gate.Deny, "the age is wrong"},
		"an old signature of one of two":  {both, []stamped{young, {by: reviewer, ago: 9 * day}}, gate.Deny, "the age is wrong"},
		"old signatures of both":          {both, []stamped{old, {by: reviewer, ago: 9 * day}}, gate.Allow, ""},
		"a signature of one of two":       {both, []stamped{old}, gate.Deny, "wrong-key"},
		"a signature of another alone":    {cool, []stamped{{by: reviewer, ago: 9 * day}}, gate.Deny, "wrong-key"},
		"no signature":                    {cool, nil, gate.Deny, "unsigned"},
		"no signature, negated":           {"!(" + cool + ")", nil, gate.Deny, "unsigned"},
		"fresh":                           {fresh, []stamped{young}, gate.Allow, ""},
		"stale":                           {fresh, []stamped{old}, gate.Deny, "the age is wrong"},
		"fresh again":                     {fresh, []stamped{old, young}, gate.Allow, ""},
		"fresh by another":                {fresh, []stamped{old, {by: reviewer, ago: time.Hour}}, gate.Deny, "the age is wrong"},
		"a fresh document":                {sbom, []stamped{{by: builder, ago: day, body: "{}"}}, gate.Allow, ""},
		"a stale document":                {sbom, []stamped{{by: builder, ago: 4 * day, body: "{}"}}, gate.Deny, "the age is wrong"},
		"a fresh document of another":     {sbom, []stamped{{by: builder, ago: 4 * day, body: "{}"}, {by: reviewer, ago: day, body: "{}"}}, gate.Deny, ""},
		"a document that claims its time": {coolDoc, []stamped{{by: builder, ago: day, body: forged}}, gate.Deny, "the age is wrong"},
		"no document":                     {sbom, []stamped{young}, gate.Deny, "no-attestation"},
		"a signature of another time":     {coolDoc, []stamped{old, {by: builder, ago: day, body: "{}"}}, gate.Deny, ""},
		"no attestor":                     {strings.ReplaceAll(cool, "attestors.builder", ""), []stamped{old}, gate.Error, "list of attestors is empty"},
		"no verified time": {
			strings.ReplaceAll(cool, "builder", "unlogged"), []stamped{{by: builder, ago: 4 * day, noLog: true}}, gate.Error, "no-verified-time",
		},
		"no verified time, negated": {
			"!(" + strings.ReplaceAll(cool, "builder", "unlogged") + ")", []stamped{{by: builder, ago: 4 * day, noLog: true}}, gate.Error, "no-verified-time",
		},
		"a time in the future": {cool, []stamped{{by: builder, ago: -9 * day}}, gate.Deny, ""},
	} {
		t.Run(name, func(t *testing.T) {
			policy := strings.Replace(agePolicy, "EXPRESSION", "\n      "+c.expression, 1)
			policy = strings.Replace(policy, "expression: images", "expression: >-\n      images", 1)
			out := h.decide(t, h.stamp(t, name, c.claims...), policy)
			expect(t, out, name, c.answer, c.word)
			if c.answer == gate.Allow && len(out.Verdicts[0].Decisions[0].Facts) == 0 {
				t.Error("no signature is named as verified")
			}
		})
	}
}

// TestSignedAtUndefined: a call that could have no value is refused when the policy is compiled.
func TestSignedAtUndefined(t *testing.T) {
	h := newEnv(t)
	for reason, expression := range map[string]string{
		"an attestor that is not defined":    `firstSignedAt(image, [attestors.other]) < time.now()`,
		"an attestation that is not defined": `lastSignedAt(image, attestations.other, [attestors.builder]) < time.now()`,
		"a time without its image":           `firstSignedAt([attestors.builder]) < time.now()`,
	} {
		policy := strings.Replace(agePolicy, "EXPRESSION", expression, 1)
		if _, err := newCompiler().Compile([]byte(h.fill(policy)), "test.yaml"); err == nil {
			t.Errorf("%s is accepted", reason)
		}
	}
}

// TestSignedAtWarm: the time is part of the cached claim, and costs no request of its own.
func TestSignedAtWarm(t *testing.T) {
	h := newEnv(t)
	const plain, timed = `verifyImageSignatures(image, [attestors.builder]) > 0`, `firstSignedAt(image, [attestors.builder]) < lastSignedAt(image, [attestors.builder])`
	request := h.stamp(t, "warm", stamped{by: h.key, ago: 4 * time.Hour}, stamped{by: h.key, ago: time.Hour})
	var cold [2]int64
	for i, expression := range []string{plain, timed} {
		policy := strings.Replace(agePolicy, "expression: images.containers.all(image, EXPRESSION)", "expression: >-\n      images.containers.all(image, "+expression+")", 1)
		g := h.gate(t, h.set(t, policy))
		first, second := g.Decide(t.Context(), request), g.Decide(t.Context(), request)
		expect(t, first, expression, gate.Allow, "")
		expect(t, second, expression, gate.Allow, "")
		cold[i] = first.Cost.Requests
		if second.Cost.Requests != 0 {
			t.Errorf("%s: %d requests when warm", expression, second.Cost.Requests)
		}
	}
	if cold[1] > cold[0] { // the registry client has its own cache
		t.Errorf("%d requests with the time, %d without", cold[1], cold[0])
	}
}
