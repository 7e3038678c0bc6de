package gate_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// unasked is a rule that cannot be evaluated.
type unasked struct {
	rule
	err error
}

func (u unasked) Plan(context.Context, *policy.Subject, []policy.Image) (policy.RulePlan, error) {
	return policy.RulePlan{}, u.err
}

// TestUnevaluatedRuleMayMatch: the reason is then not that no policy matches the image.
func TestUnevaluatedRuleMayMatch(t *testing.T) {
	h := newEnv(t, registrytest.Options{})
	app := h.Build("app", "v1", "app")
	must(0, h.SignBundle(app, byKey(h.key), nil))(t)
	undefined := errors.New("the variable request.team is not defined")
	silence := &image.Error{Kind: image.Unavailable, Op: "read", On: "a ConfigMap"}
	const nobody, nobodyAsked = "no policy matches this image", "no policy that could be evaluated matches this image"
	for _, c := range []struct {
		reason   string
		policy   policy.Policy
		answer   gate.Result
		code     policy.Code
		says     string
		warnings int
	}{
		{"audited, and not asked", policy.Policy{Settings: policy.Settings{AuditOnly: true}, Rules: []policy.Rule{unasked{err: undefined}}}, gate.Allow, policy.NotConcerned, nobodyAsked, 1},
		{"audited, and of nothing", policy.Policy{Settings: policy.Settings{AuditOnly: true}, Rules: []policy.Rule{unasked{}}}, gate.Unchecked, policy.NotConcerned, nobody, 0},
		{"silence is admitted", policy.Policy{Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{unasked{err: silence}}}, gate.Allow, policy.NotConcerned, nobodyAsked, 1},
		{"a fault is not", policy.Policy{Settings: policy.Settings{FailOpen: true}, Rules: []policy.Rule{unasked{err: undefined}}}, gate.Error, policy.PolicyError, "request.team", 0},
		{"enforced, and not asked", policy.Policy{Rules: []policy.Rule{unasked{err: undefined}}}, gate.Error, policy.PolicyError, "request.team", 0},
		{"another rule matches it", policy.Policy{Settings: policy.Settings{AuditOnly: true}, Rules: []policy.Rule{unasked{err: undefined}, signedBy(h.key)}}, gate.Allow, policy.Verified, "signed by", 1},
	} {
		c.policy.Kind, c.policy.Name, c.policy.Hash = "Test", "test", "1"
		out := h.gateWith(t, &c.policy).Decide(t.Context(), pod(t, app.Name))
		said := out.Verdicts[0].Reasons[0]
		if out.Result != c.answer || said.Code != c.code || !strings.Contains(said.Message, c.says) || len(out.Warnings) != c.warnings {
			t.Errorf("%s: %s %+v, warnings %v", c.reason, out.Result, said, out.Warnings)
		}
	}
}
