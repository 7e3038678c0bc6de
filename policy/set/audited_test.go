package set_test

import (
	"context"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// enforcing asks about every image, and denies.
type enforcing struct{ action policy.Action }

func (enforcing) Name() string                                  { return "enforcing" }
func (enforcing) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (e enforcing) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	var plan policy.RulePlan
	for _, i := range images {
		plan.Checks = append(plan.Checks, policy.Check{Image: i, Action: e.action})
	}
	return plan, nil
}
func (enforcing) Targets() []policy.Target { return nil }
func (e enforcing) Validate(context.Context, policy.Case) policy.Validated {
	return policy.Validated{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Unsigned, Message: "no"}}, Action: e.action}
}

// TestAudited: of an audited policy nothing enforces, what warns goes on warning, and the
// set has another name; the policy it was made of is as it was.
func TestAudited(t *testing.T) {
	for _, c := range []struct {
		reason     string
		own, want  policy.Action
		by         string
		auditsOnly bool
	}{
		{"enforcing", policy.Enforce, policy.Audit, "the setting", true},
		{"an unknown action enforces", "odd", policy.Audit, "the setting", true},
		{"warning", policy.Warn, policy.Warn, "the setting", true},
		{"no cause of an audit", policy.Enforce, policy.Enforce, "", false},
	} {
		own := &policy.Policy{Kind: "Test", Name: "p", Hash: "h", Rules: []policy.Rule{enforcing{c.own}}, ObjectRules: policy.ObjectRules{Validations: []policy.Validation{enforcing{c.own}}}}
		made := policy.Audited(own, c.by)
		if own.AuditOnly || own.AuditedBy != "" || made.AuditOnly != c.auditsOnly || made.AuditedBy != c.by {
			t.Errorf("%s: %+v of %+v", c.reason, made, own)
		}
		before, err := set.New(own)
		if err != nil {
			t.Fatal(err)
		}
		set, err := set.New(made)
		if err != nil {
			t.Fatal(err)
		}
		if (set.Hash() != before.Hash()) != c.auditsOnly {
			t.Errorf("%s: the sets are called %s and %s", c.reason, before.Hash(), set.Hash())
		}
		find := func([]policy.Extractor) ([]policy.Image, error) { return []policy.Image{{Pointer: "/a"}}, nil }
		subject := &policy.Subject{Kind: "Pod"}
		plan := set.Plan(t.Context(), subject, find)
		if len(plan.Checks) != 1 || plan.Checks[0].Action != c.want || plan.Checks[0].Policy != made {
			t.Errorf("%s: checks %+v", c.reason, plan.Checks)
		}
		if results := set.Validate(t.Context(), subject, find); len(results) != 1 || results[0].Action != c.want {
			t.Errorf("%s: validations %+v", c.reason, results)
		}
	}
	if first := policy.Audited(&policy.Policy{}, "one"); policy.Audited(first, "two").AuditedBy != "one" {
		t.Error("the first cause is not reported")
	}
}
