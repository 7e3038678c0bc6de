package sigstore_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/sigstore"
)

// TestOverall: a policy over static authorities and the object.
func TestOverall(t *testing.T) {
	const pass = "  authorities: [{name: a, static: {action: pass}}]\n"
	for _, c := range []struct {
		spec   string
		want   policy.Result // empty: cannot be evaluated
		change func(*policy.Subject)
		reason string
	}{
		{"  policy: {includeTypeMeta: true, type: cue, data: 'typemeta: kind: \"Pod\"'}\n" + pass, policy.Pass, nil, "pods alone, and a pod"},
		{"  policy: {includeTypeMeta: true, type: cue, data: 'typemeta: kind: \"Pod\"'}\n" + pass, policy.Fail, func(s *policy.Subject) { s.Group, s.Kind = "apps", "Deployment" }, "pods alone, and a deployment"},
		{"  policy: {includeTypeMeta: true, type: cue, data: 'typemeta: apiVersion: \"apps/v1\"'}\n" + pass, policy.Pass, func(s *policy.Subject) { s.Group, s.Kind = "apps", "Deployment" }, "the version of a group"},
		{"  policy: {includeObjectMeta: true, type: cue, data: 'metadata: labels: app: \"web\"'}\n" + pass, policy.Pass, nil, "a label"},
		{"  policy: {includeObjectMeta: true, type: cue, data: 'metadata: labels: app: \"db\"'}\n" + pass, policy.Fail, nil, "another label"},
		{"  policy: {includeObjectMeta: true, type: cue, data: 'metadata: labels: team: string'}\n" + pass, policy.Fail, nil, "a label that is missing"},
		{"  policy: {includeSpec: true, type: rego, data: \"package sigstore\\nisCompliant { not input.spec.hostNetwork }\"}\n" + pass, policy.Pass, func(s *policy.Subject) { s.Object.Map()["spec"] = map[string]any{} }, "the specification"},
		{"  policy: {includeSpec: true, type: rego, data: \"package sigstore\\nisCompliant { not input.spec.hostNetwork }\"}\n" + pass, policy.Fail, func(s *policy.Subject) { s.Object.Map()["spec"] = map[string]any{"hostNetwork": true} }, "another specification"},
		{"  policy: {includeSpec: true, type: rego, data: \"package sigstore\\nisCompliant { not input.spec.hostNetwork }\"}\n" + pass, "", func(s *policy.Subject) { s.Bare, s.Object = true, policy.Content{} }, "an unknown object"},
		{"  policy: {type: cue, data: 'authorityMatches: a: static: true'}\n" + pass, policy.Pass, nil, "the authority that passes"},
		{"  policy: {type: cue, data: 'authorityMatches: b: static: true'}\n" + pass, policy.Fail, nil, "another authority"},
		{"  policy: {type: cue, data: 'authorityMatches: _'}\n" + strings.Replace(pass, "pass", "fail", 1), policy.Fail, nil, "no authority passes"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			s := pod("prod")
			if c.change != nil {
				c.change(s)
			}
			made := plan(t, s, "ghcr.io/org/app:v1", compile(t, sigstore.Options{}, head+c.spec))
			if c.want == "" {
				if outcome(made) != "error" {
					t.Errorf("%+v", made)
				}
				return
			}
			if d := decision(t, &made.Checks[0], answers()); d.Result != c.want {
				t.Errorf("%s %+v; want %s", d.Result, d.Reasons, c.want)
			}
		})
	}
}

// TestRegoWarnings: a compliant result with a warning fails a policy, and an attestation's does not
// count.
func TestRegoWarnings(t *testing.T) {
	const (
		warning  = `{type: rego, data: "package sigstore\nisCompliant[r] { r := {\"result\": true, \"warning\": \"old base\"} }"}`
		silent   = `{type: rego, data: "package sigstore\nisCompliant[r] { r := {\"result\": true, \"warning\": \"\"} }"}`
		ifOld    = `{type: rego, data: "package sigstore\nisCompliant[r] { r := {\"result\": true, \"warning\": input.predicate.says} }"}`
		static   = "  authorities: [{static: {action: pass}}]\n"
		attested = "  authorities: [{name: a, key: {data: $KEY}, attestations: [{name: scan, predicateType: vuln, policy: " + ifOld + "}]}]\n"
	)
	old, recent := proof{"authorities[0].key", vulnType, `{"says":"old base"}`}, proof{"authorities[0].key", vulnType, `{"says":""}`}
	counts := "  policy: " + regoPolicy("count(input.authorityMatches.a.attestations.scan) == 1") + "\n"
	for _, c := range []struct {
		spec   string
		proofs []proof
		want   policy.Result
		code   policy.Code
		reason string
	}{
		{"  policy: " + warning + "\n" + static, nil, policy.Fail, policy.Denied, "over all, with a warning"},
		{"  mode: warn\n  policy: " + warning + "\n" + static, nil, policy.Fail, policy.Denied, "over all, with a warning, in a policy that warns"},
		{"  policy: " + silent + "\n" + static, nil, policy.Pass, policy.DigestPinned, "over all, with an empty one"},
		{attested, []proof{old}, policy.Fail, policy.ConditionFailed, "an attestation with a warning"},
		{"  mode: warn\n" + attested, []proof{old}, policy.Fail, policy.ConditionFailed, "an attestation with a warning, in a policy that warns"},
		{attested, []proof{recent}, policy.Pass, policy.Verified, "an attestation with an empty one"},
		{attested, []proof{old, recent}, policy.Pass, policy.Verified, "an attestation with a warning beside one without"},
		{counts + attested, []proof{old, recent}, policy.Pass, policy.Verified, "the one without is counted"},
		{counts + attested, []proof{recent, {"authorities[0].key", vulnType, `{"says":"","n":2}`}}, policy.Fail, policy.Denied, "two without are counted"},
	} {
		check := only(t, compile(t, sigstore.Options{}, head+c.spec))
		if strings.Contains(c.spec, "mode: warn") != (check.Action == policy.Warn) {
			t.Errorf("%s: the action is %s", c.reason, check.Action)
		}
		d := decision(t, check, answers(c.proofs...))
		if d.Result != c.want || d.Reasons[0].Code != c.code || strings.Contains(c.reason, "a warning") && c.want == policy.Fail && !strings.Contains(d.Reasons[0].Message, "warning: old base") {
			t.Errorf("%s: %s %+v; want %s %s", c.reason, d.Result, d.Reasons, c.want, c.code)
		}
	}
}

// TestSiblingsAtTheGate: a policy about the authorities together may have a condition on one of
// them, in CUE and in Rego.
func TestSiblingsAtTheGate(t *testing.T) {
	y := newYard(t)
	authorities := "  authorities: [{name: release, key: {data: $RELEASE}}, {name: all, static: {action: pass}}]\n"
	for language, text := range map[string]string{
		"CUE": `  policy:
    type: cue
    data: |
      package sigstore
      import "list"
      authorityMatches: {
        all: static: true
        release: signatures: list.MaxItems(9)
        if len(authorityMatches.release.signatures) < 1 {
          enough: 1
          enough: "no"
        }
      }
`,
		"Rego": `  policy:
    type: rego
    data: |
      package sigstore
      isCompliant {
        input.authorityMatches.all.static
        found := input.authorityMatches.release.signatures
        count(found) >= 1
      }
`,
	} {
		g, err := y.Gate(y.compile(t, strings.NewReplacer("ghcr.io/org", "$HOST/shop").Replace(head)+text+authorities))
		done(t, err)
		for _, c := range []struct {
			by     evidence
			want   gate.Result
			reason string
		}{
			{byKey(release), gate.Allow, "signed"},
			{byKey(stranger), gate.Deny, "by another key"},
		} {
			image := y.build("shop")
			c.by(t, y, image)
			if out := g.Decide(t.Context(), request(t, podObject, image.Name)); out.Result != c.want {
				t.Errorf("%s, %s: %s, want %s: %v", language, c.reason, out.Result, c.want, out)
			}
		}
	}
}

// TestNotThereAtTheGate: a CUE policy over a missing value does not hold, next to an
// authority that always passes.
func TestNotThereAtTheGate(t *testing.T) {
	y := newYard(t)
	text := strings.NewReplacer("ghcr.io/org", "$HOST/shop").Replace(head) +
		"  policy: {type: cue, data: \"authorityMatches: {...}\\nsigned: >=1 & len(authorityMatches.release.signatures)\"}\n" +
		"  authorities: [{name: release, key: {data: $RELEASE}}, {name: all, static: {action: pass}}]\n"
	g, err := y.Gate(y.compile(t, text))
	done(t, err)
	for _, c := range []struct {
		by     []evidence
		want   gate.Result
		reason string
	}{
		{[]evidence{byKey(release)}, gate.Allow, "signed"},
		{[]evidence{byKey(stranger)}, gate.Deny, "by another key"},
		{nil, gate.Deny, "unsigned"},
	} {
		image := y.build("shop")
		for _, e := range c.by {
			e(t, y, image)
		}
		if out := g.Decide(t.Context(), request(t, podObject, image.Name)); out.Result != c.want {
			t.Errorf("%s: %s %+v; want %s", c.reason, out.Result, out.Verdicts[0].Reasons, c.want)
		}
	}
}
