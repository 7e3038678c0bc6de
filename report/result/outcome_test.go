package result_test

import (
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
)

// TestOfRules: what a rule about an object comes to in a report.
func TestOfRules(t *testing.T) {
	scored, unscored := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}, &policy.Policy{Kind: "Policy", Namespace: "n", Name: "p", Unscored: true}
	failed := policy.Ruling{Result: policy.Fail, Reasons: []policy.Reason{{Code: policy.Violated, Message: "no"}}}
	for _, row := range []struct {
		reason string
		rule   policy.RuleResult
		want   result.Status
	}{
		{"nothing is held against it", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule}, result.Pass},
		{"a failure that denies", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule, Ruling: failed, Action: policy.Enforce}, result.Fail},
		{"a failure that is only told", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule, Ruling: failed, Action: policy.Audit}, result.Fail},
		{"its author only warns", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule, Ruling: failed, Action: policy.Warn}, result.Warn},
		{"its author does not count failures", policy.RuleResult{Policy: unscored, Kind: policy.ValidateRule, Ruling: failed, Action: policy.Enforce}, result.Warn},
		{"it could not be asked", policy.RuleResult{Policy: scored, Err: errors.New("gone")}, result.Error},
		{"it could not look", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule, Ruling: policy.Ruling{Result: policy.Undecided}}, result.Error},
		{"its conditions leave it alone", policy.RuleResult{Policy: scored, Kind: policy.ValidateRule, Skip: "preconditions"}, result.Skip},
	} {
		got := result.Of(report.Decided{Outcome: gate.Outcome{Rules: []policy.RuleResult{row.rule}}})
		if len(got) != 1 || got[0].Status != row.want {
			t.Errorf("%s: %+v, want %s", row.reason, got, row.want)
		}
	}
}
