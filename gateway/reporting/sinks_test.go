package reporting

import (
	"log/slog"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// TestMutationsArePassedOn: the results of mutation rules for an object that was there are passed on
// from the mutating endpoint, without those of other rules.
func TestMutationsArePassedOn(t *testing.T) {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}
	mutation, other := policy.RuleResult{Policy: p, Rule: "m", Kind: policy.MutateRule, Changed: true}, policy.RuleResult{Policy: p, Rule: "v", Kind: policy.ValidateRule}
	for _, c := range []struct {
		reason    string
		endpoint  admission.Endpoint
		operation string
		rules     []policy.RuleResult
		want      int
	}{
		{"an update", admission.Mutate, "UPDATE", []policy.RuleResult{mutation, other}, 1},
		{"no mutation rule", admission.Mutate, "UPDATE", []policy.RuleResult{other}, 0},
		{"a creation: there is no UID yet", admission.Mutate, "CREATE", []policy.RuleResult{mutation}, 0},
		{"the validating endpoint has none", admission.Validate, "UPDATE", []policy.RuleResult{other}, 0},
	} {
		kept := &shelf{}
		Recorder{Log: slog.New(slog.DiscardHandler), Metrics: &counts{}, Sinks: Sinks{Mutated: []report.Sink{kept}}}.Record(t.Context(), admission.Review{
			Endpoint: c.endpoint, Operation: c.operation, Version: "v1", Kind: "Pod", Namespace: "shop", Name: "app", Cause: admission.Decided, Allowed: true,
			Outcome: gate.Outcome{Result: gate.Allow, Rules: c.rules},
		})
		if len(kept.all) != c.want || c.want == 1 && (len(kept.all[0].Outcome.Rules) != 1 || kept.all[0].Outcome.Rules[0].Rule != "m") {
			t.Errorf("%s: %+v", c.reason, kept.all)
		}
	}
}
