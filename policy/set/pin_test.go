package set_test

import (
	"context"
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// TestLacking: a missing digest denies whatever else is found, and hides none of it.
func TestLacking(t *testing.T) {
	reason := func(code policy.Code) policy.Reason { return policy.Reason{Code: code} }
	for _, c := range []struct {
		why    string
		result policy.Result
		own    policy.Code
		want   policy.Result
		codes  []policy.Code
	}{
		{"all else is well", policy.Pass, policy.Verified, policy.Fail, []policy.Code{policy.MissingDigest}},
		{"the missing signature is graver", policy.Fail, policy.Unsigned, policy.Fail, []policy.Code{policy.Unsigned, policy.MissingDigest}},
		{"what could not be verified is not certain", policy.Indeterminate, policy.Unavailable, policy.Fail, []policy.Code{policy.MissingDigest, policy.Unavailable}},
		{"it is left alone", policy.Skipped, policy.SkippedByPolicy, policy.Skipped, []policy.Code{policy.SkippedByPolicy}},
	} {
		shared := []policy.Reason{reason(c.own)}
		got := policy.Decision{Check: check(), Result: c.result, Reasons: shared[:1:1]}.Lacking(reason(policy.MissingDigest))
		var codes []policy.Code
		for _, r := range got.Reasons {
			codes = append(codes, r.Code)
		}
		if got.Result != c.want || !slices.Equal(codes, c.codes) || got.Result == policy.Fail && len(got.Facts) > 0 {
			t.Errorf("%s: %s %v, want %s %v", c.why, got.Result, codes, c.want, c.codes)
		}
	}
}

// pinning is a rule that pins in the objects which it names, or leaves it to their pods.
type pinning struct {
	targets []policy.Target
	named   bool
}

func (pinning) Name() string                                  { return "pinning" }
func (pinning) Extractors(*policy.Subject) []policy.Extractor { return nil }
func (p pinning) Targets() []policy.Target                    { return p.targets }
func (pinning) ImagePatterns() ([]string, bool)               { return nil, false }
func (p pinning) PinsNamed() bool                             { return p.named }
func (pinning) Plan(_ context.Context, _ *policy.Subject, images []policy.Image) (policy.RulePlan, error) {
	var plan policy.RulePlan
	for _, i := range images {
		plan.Checks = append(plan.Checks, policy.Check{Entry: "e", Image: i, Pinning: policy.Pinning{MutateDigest: true}})
	}
	return plan, nil
}

// TestMayPin: images are pinned in objects of the kinds that a rule names itself.
func TestMayPin(t *testing.T) {
	deployments := []policy.Target{{Group: "apps", Version: "*", Kind: "Deployment"}, {Version: "*", Kind: "Pod"}}
	deployment := policy.Subject{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Operation: "CREATE"}
	of := func(change func(*policy.Subject)) policy.Subject {
		s := deployment
		change(&s)
		return s
	}
	for _, c := range []struct {
		reason    string
		rule      pinning
		namespace string
		subject   policy.Subject
		want      bool
	}{
		{"a kind that is named", pinning{deployments, true}, "", deployment, true},
		{"a kind that follows", pinning{deployments, false}, "", deployment, false},
		{"another kind", pinning{deployments, true}, "", of(func(s *policy.Subject) { s.Kind = "StatefulSet" }), false},
		{"the kind of another group", pinning{deployments, true}, "", of(func(s *policy.Subject) { s.Group = "example.com" }), false},
		{"a pod, which is pinned always", pinning{deployments, true}, "", of(func(s *policy.Subject) { s.Group, s.Kind = "", "Pod" }), false},
		{"a subresource", pinning{deployments, true}, "", of(func(s *policy.Subject) { s.Subresource = "scale" }), false},
		{"an update", pinning{deployments, true}, "", of(func(s *policy.Subject) { s.Operation = "UPDATE" }), true},
		{"a deletion", pinning{deployments, true}, "", of(func(s *policy.Subject) { s.Operation = "DELETE" }), false},
		{"by a policy of the namespace", pinning{deployments, true}, "shop", deployment, true},
		{"by a policy of another namespace", pinning{deployments, true}, "team", deployment, false},
		{"by a pattern", pinning{[]policy.Target{{Group: "*", Version: "*", Kind: "*"}}, true}, "", deployment, true},
	} {
		set, err := set.New(&policy.Policy{Kind: "Test", Name: "p", Namespace: c.namespace, Rules: []policy.Rule{c.rule}})
		if err != nil {
			t.Fatal(err)
		}
		if got := set.MayPin(&c.subject); got != c.want {
			t.Errorf("%s: %t, want %t", c.reason, got, c.want)
		}
		if kinds := set.Policies()[0].NamedKinds(); (len(kinds) == 1 && kinds[0] != "Pod") != c.rule.named {
			t.Errorf("%s: names %v", c.reason, kinds)
		}
	}
}
