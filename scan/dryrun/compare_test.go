package dryrun_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/scan/dryrun"
	"github.com/quaymaster/quaymaster/workload"
)

// reported is a report's result of a rule about an object.
func reported(kind, name, rule string, status result.Status) result.Result {
	return result.Result{
		Policy: result.Policy{Kind: "ClusterPolicy", Name: "labels"}, Rule: rule, Status: status,
		Resource: report.Resource{Kind: kind, Namespace: "shop", Name: name},
	}
}

// decided is a rule's current result.
func decided(o workload.Object, is policy.Result, action policy.Action) report.Decided {
	ruling := policy.Ruling{Result: is}
	if is != policy.Pass {
		ruling.Reasons = []policy.Reason{{Code: policy.Unsigned, Message: "want the label\nand more"}}
	}
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "labels"}
	content, _ := o.Root().Decoded().(map[string]any)
	return report.Decided{Outcome: gate.Outcome{
		Object:  o,
		Subject: &policy.Subject{Version: "v1", Kind: o.Kind(), Namespace: o.Namespace(), Name: o.Name(), Object: policy.ContentOf(content)},
		Rules:   []policy.RuleResult{{Policy: p, Rule: "label", Kind: policy.ValidateRule, Ruling: ruling, Action: action}},
	}}
}

// TestCompare: a change is reported once for a workload, and an unchanged result is not.
func TestCompare(t *testing.T) {
	plain := object(t, "a", "", "")
	owned, sibling := ofDeployment(t, "web-5d4-x"), ofDeployment(t, "web-5d4-y")
	for _, c := range []struct {
		reason string
		before []result.Result
		now    []report.Decided
		want   string
	}{
		{"as it was", []result.Result{reported("Pod", "a", "label", result.Fail)}, []report.Decided{decided(plain, policy.Fail, policy.Enforce)}, ""},
		{"it fails now", []result.Result{reported("Pod", "a", "label", result.Pass)}, []report.Decided{decided(plain, policy.Fail, policy.Enforce)},
			"Pod shop/a: ClusterPolicy/labels, rule label: pass -> fail, denied [unsigned] want the label\n"},
		{"it passes now", []result.Result{reported("Pod", "a", "label", result.Fail)}, []report.Decided{decided(plain, policy.Pass, policy.Enforce)},
			"Pod shop/a: ClusterPolicy/labels, rule label: fail -> pass\n"},
		{"it fails now, and audits", []result.Result{reported("Pod", "a", "label", result.Pass)}, []report.Decided{decided(plain, policy.Fail, policy.Audit)},
			"Pod shop/a: ClusterPolicy/labels, rule label: pass -> fail [unsigned] want the label\n"},
		{"a report without the rule: it passed", []result.Result{reported("Pod", "a", "other", result.Fail)}, []report.Decided{decided(plain, policy.Fail, policy.Enforce)},
			"Pod shop/a: ClusterPolicy/labels, rule label: pass -> fail, denied [unsigned] want the label\n"},
		{"it is in no report", nil, []report.Decided{decided(plain, policy.Fail, policy.Enforce)},
			"Pod shop/a: ClusterPolicy/labels, rule label: unknown -> fail, denied [unsigned] want the label\n"},
		{"it is in no report, and it passes", nil, []report.Decided{decided(plain, policy.Pass, policy.Enforce)}, ""},
		{"the workload's report covers its pods, by a generated rule", []result.Result{reported("Deployment", "web", "autogen-label", result.Fail)},
			[]report.Decided{decided(owned, policy.Fail, policy.Enforce)}, ""},
		{"its pods change alike", []result.Result{reported("Deployment", "web", "label", result.Pass)},
			[]report.Decided{decided(owned, policy.Fail, policy.Enforce), decided(sibling, policy.Fail, policy.Enforce)},
			"Deployment shop/web: ClusterPolicy/labels, rule label: pass -> fail, denied [unsigned] want the label\n"},
		{"what has ended", nil, []report.Decided{decided(object(t, "over", "", `,"status":{"phase":"Failed"}`), policy.Fail, policy.Enforce)}, ""},
	} {
		known := dryrun.NewComparison()
		known.Before(c.before...)
		for _, d := range c.now {
			known.Take(d)
		}
		var b strings.Builder
		if err := known.Write(&b); err != nil || b.String() != c.want {
			t.Errorf("%s: %v\ngot  %qwant %q", c.reason, err, b.String(), c.want)
		}
	}
}

// TestCompareIsReadAtATerminal: a message of a rule is its author's text, and stays text.
func TestCompareIsReadAtATerminal(t *testing.T) {
	known := dryrun.NewComparison()
	d := decided(object(t, "a", "", ""), policy.Fail, policy.Enforce)
	d.Outcome.Rules[0].Ruling.Reasons[0].Message = "want\x1b[2J the label"
	known.Take(d)
	var b strings.Builder
	if err := known.Write(&b); err != nil || !strings.Contains(b.String(), `want\x1b[2J the label`) {
		t.Errorf("%v: %q", err, b.String())
	}
}

// TestCompareIsBounded: denials come first, and results without a line are counted.
func TestCompareIsBounded(t *testing.T) {
	known := dryrun.NewComparison()
	for i := range dryrun.MaxTold + 10 {
		known.Take(decided(object(t, "p"+strings.Repeat("x", i), "", ""), policy.Fail, policy.Audit))
	}
	known.Take(decided(object(t, "zz", "", ""), policy.Fail, policy.Enforce))
	var b strings.Builder
	if err := known.Write(&b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != dryrun.MaxTold+1 || lines[dryrun.MaxTold] != "and 11 more" || !strings.Contains(lines[0], "shop/zz") || known.Objects() != dryrun.MaxTold+11 {
		t.Errorf("%d lines, the first %q, the last %q", len(lines), lines[0], lines[len(lines)-1])
	}
}
