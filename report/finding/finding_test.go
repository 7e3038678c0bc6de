package finding_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/finding"
)

func decision(effect report.Effect, result policy.Result, rule, message string) report.Decision {
	return report.Decision{
		Policy: report.Policy{Kind: "ClusterPolicy", Name: "p"}, Rule: rule, Effect: effect, Result: result,
		Reasons: []policy.Reason{{Code: policy.Unsigned, Message: message}},
	}
}

func list(records ...report.Record) report.List { return report.List{Items: records} }

// lines are the findings of one record, one a line.
func lines(r report.Record) string {
	var out []string
	for _, f := range finding.Of(list(r)).Objects[0].Findings {
		out = append(out, fmt.Sprintf("%s %s/%s %s", f.Status, f.Policy, f.Rule, f.Reasons[0].Message))
	}
	return strings.Join(out, "\n")
}

func TestOf(t *testing.T) {
	image := func(answer gate.Result, decisions ...report.Decision) report.Image {
		return report.Image{Container: "c", Written: "a.example/b:1", Result: answer, Decisions: decisions}
	}
	said := func(code policy.Code, message string) []policy.Reason {
		return []policy.Reason{{Code: code, Message: message}}
	}
	pod := report.Object{APIVersion: "v1", Kind: "Pod", Namespace: "n", Name: "p", Source: "p.yaml, document 1"}
	overruled := image(gate.Allow, decision(report.EffectWarn, policy.Fail, "r", "unsigned"))
	overruled.Override, overruled.Reasons = "ImageOverride/bad-day", said(policy.OverrideAllowed, "allowed until 2999")
	refused := image(gate.Deny, decision(report.EffectAllow, policy.Pass, "r", "signed"))
	refused.Override, refused.Reasons = "ImageOverride/stop", said(policy.OverrideDenied, "denied until 2999")
	unmatched := image(gate.Allow)
	unmatched.Reasons = said(policy.NotConcerned, "no policy")
	pinless := image(gate.Allow, decision(report.EffectAllow, policy.Pass, "r", "signed"))
	pinless.Reasons = said(policy.NotPinned, "may move")
	differs := image(gate.Allow, decision(report.EffectAllow, policy.Pass, "r", "signed"))
	differs.Warnings = said(policy.MirrorDiffers, "another digest")
	asked := report.Policy{Kind: "ClusterPolicy", Name: "q"}
	for _, c := range []struct {
		reason string
		record report.Record
		want   string
	}{
		{"one for each rule", report.Record{Result: gate.Deny, Images: []report.Image{image(gate.Deny,
			decision(report.EffectAllow, policy.Pass, "r", "signed"), decision(report.EffectDeny, policy.Fail, "s", "unsigned"))}},
			"pass ClusterPolicy/p/r signed\ndeny ClusterPolicy/p/s unsigned"},
		{"of the entries of a rule the worst counts", report.Record{Result: gate.Deny, Images: []report.Image{image(gate.Deny,
			decision(report.EffectAllow, policy.Pass, "r", "signed"), decision(report.EffectDeny, policy.Fail, "r", "unsigned"))}},
			"deny ClusterPolicy/p/r unsigned"},
		{"could not be verified", report.Record{Result: gate.Error, Images: []report.Image{image(gate.Error, decision(report.EffectError, policy.Indeterminate, "r", "down"))}},
			"error ClusterPolicy/p/r down"},
		{"left alone", report.Record{Result: gate.Allow, Images: []report.Image{image(gate.Allow, decision(report.EffectAllow, policy.Skipped, "r", "exempt"))}},
			"skip ClusterPolicy/p/r exempt"},
		{"an override allows", report.Record{Result: gate.Allow, Images: []report.Image{overruled}},
			"warn ClusterPolicy/p/r unsigned\nskip ImageOverride/bad-day/ allowed until 2999"},
		{"an override denies a verified image", report.Record{Result: gate.Deny, Images: []report.Image{refused}},
			"pass ClusterPolicy/p/r signed\ndeny ImageOverride/stop/ denied until 2999"},
		{"no policy matches it", report.Record{Result: gate.Allow, Images: []report.Image{unmatched}}, "skip / no policy"},
		{"worth knowing", report.Record{Result: gate.Allow, Images: []report.Image{pinless}}, "pass ClusterPolicy/p/r signed\nnote / may move"},
		{"a warning beside the rules", report.Record{Result: gate.Allow, Images: []report.Image{differs}}, "pass ClusterPolicy/p/r signed\nwarn / another digest"},
		{"a rule about the object", report.Record{Result: gate.Deny, Rules: []report.Rule{
			{Policy: asked, Rule: "a", Result: policy.Pass}, {Policy: asked, Rule: "b", Result: policy.Fail, Reasons: said(policy.Violated, "no label")},
			{Policy: asked, Rule: "c", Result: policy.Fail, Action: policy.Audit, Reasons: said(policy.Violated, "no team")}, {Policy: asked, Rule: "d", Skipped: "another kind"},
		}}, "pass ClusterPolicy/q/a the object satisfies the rule\ndeny ClusterPolicy/q/b no label\nwarn ClusterPolicy/q/c no team"},
		{"a rule that could not be evaluated", report.Record{Result: gate.Error, Rules: []report.Rule{{Policy: asked, Rule: "a", Error: "forbidden"}},
			Reasons: said(policy.PolicyError, "rule a: forbidden")}, "error ClusterPolicy/q/a rule a: forbidden"},
		{"one that is admitted", report.Record{Result: gate.Allow, Rules: []report.Rule{{Policy: asked, Rule: "a", Error: "forbidden"}},
			Warnings: said(policy.PolicyError, "rule a: forbidden")}, "warn ClusterPolicy/q/a rule a: forbidden"},
		{"two images, each its own warning", report.Record{Result: gate.Allow, Images: []report.Image{differs, differs}},
			"pass ClusterPolicy/p/r signed\nwarn / another digest\npass ClusterPolicy/p/r signed\nwarn / another digest"},
		{"nothing to say", report.Record{Result: gate.Allow}, "skip / it has no images, and no rule matches it"},
		{"a denial without a reason is one", report.Record{Result: gate.Deny}, "deny / no reason was given; this is a defect"},
		{"an answer that is none", report.Record{}, "error / no reason was given; this is a defect"},
	} {
		c.record.Object = pod
		if got := lines(c.record); got != c.want {
			t.Errorf("%s:\n%s\nwant:\n%s", c.reason, got, c.want)
		}
	}
}

// TestReportedAsPassed: what an exception covers is skipped, or passed where its author has
// it reported so; either names the exception, and a failure beside it stays one.
func TestReportedAsPassed(t *testing.T) {
	for asPass, want := range map[bool]finding.Status{true: finding.Pass, false: finding.Skip} {
		by := &report.Exception{Name: "ops/old", AsPass: asPass}
		excepted := decision(report.EffectAllow, policy.Skipped, "signed", "left alone")
		excepted.Exception = by
		run := finding.Of(list(report.Record{
			Object: report.Object{Kind: "Pod", Name: "web"}, Result: gate.Allow,
			Images: []report.Image{{Container: "web", Written: "registry.example/web:1", Result: gate.Allow, Decisions: []report.Decision{excepted}}},
			Rules:  []report.Rule{{Policy: report.Policy{Kind: "ClusterPolicy", Name: "q"}, Rule: "a", Kind: policy.ValidateRule, Skipped: "left alone", Exception: by}},
		}))
		for _, f := range run.Objects[0].Findings {
			if f.Status != want || f.Exception == "" || !f.Telling() {
				t.Errorf("as pass %t: %s %q", asPass, f.Status, f.Exception)
			}
		}
		denied := decision(report.EffectDeny, policy.Fail, "signed", "unsigned")
		both := finding.Of(list(report.Record{Result: gate.Deny, Images: []report.Image{{Result: gate.Deny, Decisions: []report.Decision{excepted, denied}}}}))
		if got := both.Objects[0].Findings[0].Status; got != finding.Deny {
			t.Errorf("as pass %t, beside a failure: %s", asPass, got)
		}
	}
}

func ExampleOf() {
	excepted := decision(report.EffectAllow, policy.Skipped, "signed", "the policy exception ops/old leaves it alone")
	excepted.Reasons[0].Code = policy.Excepted
	excepted.Exception = &report.Exception{Name: "ops/old", Expires: time.Date(2027, 1, 31, 0, 0, 0, 0, time.UTC), Reason: "being replaced"}
	run := finding.Of(list(report.Record{
		Object: report.Object{Kind: "Pod", Namespace: "shop", Name: "web", Source: "web.yaml, document 1"}, Result: gate.Allow,
		Images: []report.Image{{Container: "web", Written: "registry.example/web:1", Result: gate.Allow, Decisions: []report.Decision{excepted}}},
	}))
	for _, o := range run.Objects {
		for _, f := range o.Findings {
			fmt.Println(f.Status, f.Sentence(o))
			fmt.Println(f.Exception)
		}
	}
	// Output:
	// skip registry.example/web:1 (web) is left alone: the policy exception ops/old leaves it alone (ClusterPolicy/p, rule signed)
	// ops/old, until 2027-01-31T00:00:00Z: being replaced
}
