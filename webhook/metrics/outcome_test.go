package metrics

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
)

// of makes the outcome of one image under one policy.
func of(answer gate.Result, p *policy.Policy, action policy.Action, result policy.Result) gate.Outcome {
	return gate.Outcome{Result: answer, Verdicts: []gate.Verdict{{
		Result: answer, Decisions: []policy.Decision{{Check: &policy.Check{Policy: p, Action: action}, Result: result}},
	}}}
}

// TestFailedOpen: only what came in because of a failure setting is counted as that.
func TestFailedOpen(t *testing.T) {
	lenient := &policy.Policy{Kind: "ClusterPolicy", Name: "lenient", Settings: policy.Settings{FailOpen: true}}
	strict := &policy.Policy{Kind: "ClusterPolicy", Name: "strict"}
	rule := func(answer gate.Result, r policy.RuleResult) gate.Outcome {
		return gate.Outcome{Result: answer, Rules: []policy.RuleResult{r}}
	}
	away := errors.New("connection refused")
	overridden := of(gate.Allow, lenient, policy.Enforce, policy.Indeterminate)
	overridden.Verdicts[0].Override = &policy.Override{Name: "incident"}
	twice := of(gate.Allow, lenient, policy.Enforce, policy.Indeterminate)
	twice.Verdicts = append(twice.Verdicts, twice.Verdicts[0])
	for _, row := range []struct {
		reason  string
		outcome gate.Outcome
		want    int
	}{
		{"indeterminate, and it fails open", of(gate.Allow, lenient, policy.Enforce, policy.Indeterminate), 1},
		{"two images of one object", twice, 1},
		{"an unknown result is indeterminate", of(gate.Allow, lenient, policy.Enforce, "perhaps"), 1},
		{"it passed", of(gate.Allow, lenient, policy.Enforce, policy.Pass), 0},
		{"it had nothing to look at", of(gate.Allow, lenient, policy.Enforce, policy.Skipped), 0},
		{"an audit admits whatever the setting", of(gate.Allow, lenient, policy.Audit, policy.Indeterminate), 0},
		{"another policy denied the object", of(gate.Deny, lenient, policy.Enforce, policy.Indeterminate), 0},
		{"the setting does not admit this", of(gate.Error, lenient, policy.Enforce, policy.Indeterminate), 0},
		{"it is strict", of(gate.Allow, strict, policy.Enforce, policy.Indeterminate), 0},
		{"an override let it in", overridden, 0},
		{"a rule could not be evaluated", rule(gate.Allow, policy.RuleResult{Policy: lenient, Err: away}), 1},
		{"that rule only audits", rule(gate.Allow, policy.RuleResult{Policy: &policy.Policy{Settings: policy.Settings{FailOpen: true, AuditOnly: true}}, Err: away}), 0},
		{"a rule about the object is indeterminate", rule(gate.Allow, policy.RuleResult{Policy: lenient, Action: policy.Enforce, Ruling: policy.Ruling{Result: policy.Indeterminate}}), 1},
		{"that rule passed", rule(gate.Allow, policy.RuleResult{Policy: lenient, Action: policy.Enforce, Ruling: policy.Ruling{Result: policy.Pass}}), 0},
	} {
		if got := len(failedOpen(&row.outcome)); got != row.want {
			t.Errorf("%s: %d policies failed open, want %d", row.reason, got, row.want)
		}
	}
	m := New(Build{})
	m.SetPolicies([]Policy{{ID: lenient.ID(), State: Ours, FailOpen: true}})
	m.Decided(of(gate.Allow, lenient, policy.Enforce, policy.Indeterminate))
	if text := scrape(t, m); !strings.Contains(text, `quaymaster_failed_open_total{policy="ClusterPolicy/lenient"} 1`) {
		t.Error("it is not counted")
	}
	m.SetPolicies(nil)
	if text := scrape(t, m); strings.Contains(text, "quaymaster_failed_open_total{") {
		t.Error("the policy is gone and has series still")
	}
}

// TestStale: an image admitted from a stale cache is counted, and no other.
func TestStale(t *testing.T) {
	stale := func(code policy.Code, images int) gate.Outcome {
		o := of(gate.Allow, &policy.Policy{Name: "p"}, policy.Enforce, policy.Pass)
		o.Verdicts[0].Warnings = []policy.Reason{{Code: code}}
		for len(o.Verdicts) < images {
			o.Verdicts = append(o.Verdicts, o.Verdicts[0])
		}
		return o
	}
	for _, row := range []struct {
		reason  string
		outcome gate.Outcome
		want    string
	}{
		{"the registry does not answer", stale(policy.Stale, 1), "1"},
		{"two images", stale(policy.Stale, 2), "2"},
		{"another warning", stale(policy.Unsigned, 1), "0"},
		{"all is well", of(gate.Allow, &policy.Policy{Name: "p"}, policy.Enforce, policy.Pass), "0"},
	} {
		m := New(Build{})
		m.Decided(row.outcome)
		if !strings.Contains(scrape(t, m), "\nquaymaster_stale_total "+row.want+"\n") {
			t.Errorf("%s: not counted as %s", row.reason, row.want)
		}
	}
}

// TestViolations: denied, warned and audited violations are counted separately.
func TestViolations(t *testing.T) {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "signed"}
	for _, row := range []struct {
		reason string
		action policy.Action
		word   string
	}{
		{"it denies", policy.Enforce, "enforce"},
		{"it warns", policy.Warn, "warn"},
		{"it is noted", policy.Audit, "audit"},
		{"an unknown action denies", "Ponder", "enforce"},
	} {
		for result, want := range map[policy.Result]bool{policy.Fail: true, policy.Pass: false, policy.Indeterminate: false} {
			m := New(Build{})
			m.SetPolicies([]Policy{{ID: p.ID(), State: Ours}})
			m.Decided(of(gate.Allow, p, row.action, result))
			ruled := gate.Outcome{Rules: []policy.RuleResult{{Policy: p, Kind: policy.ValidateRule, Action: row.action, Ruling: policy.Ruling{Result: result}}}}
			m.Decided(ruled)
			if got := strings.Contains(scrape(t, m), `quaymaster_violations_total{action="`+row.word+`",policy="ClusterPolicy/signed"} 2`); got != want {
				t.Errorf("%s: %s is counted: %t", row.reason, result, got)
			}
		}
	}
}

// TestManyOverrides: those that end first are shown, and a name that is no label is
// left out.
func TestManyOverrides(t *testing.T) {
	var list []Override
	for i := range 2 * maxOverrides {
		list = append(list, Override{Name: fmt.Sprintf("o%05d", i), Effect: "allow", Expires: time.Unix(int64(2000000000-i), 0)})
	}
	list = append(list, Override{Name: "a\nb", Effect: "allow", Expires: time.Unix(1, 0)})
	m := New(Build{})
	if err := m.Watch(Readings{Overrides: func() []Override { return list }}); err != nil {
		t.Fatal(err)
	}
	text := scrape(t, m)
	if n := strings.Count(text, "\nquaymaster_override_expiry_timestamp_seconds{"); n != maxOverrides {
		t.Errorf("%d series, want %d", n, maxOverrides)
	}
	if !strings.Contains(text, fmt.Sprintf(`override="o%05d"`, 2*maxOverrides-1)) || strings.Contains(text, `override="o00000"`) {
		t.Error("those that end last are shown, and those that end first are not")
	}
}
