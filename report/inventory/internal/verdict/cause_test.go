package verdict_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

// TestCauseOf names the container or the rule that a verdict results from; of an allowed object
// without a warning there is none.
func TestCauseOf(t *testing.T) {
	unsigned := policy.Reason{Code: policy.Unsigned, Message: "no signature", Expected: "key a", Found: "none", Hint: "sign it"}
	good := report.Image{Container: "web", Written: "web:1", Result: gate.Allow, Matched: true}
	bad := report.Image{
		Container: "debug", Written: "debug:1", Result: gate.Deny, Matched: true, Reasons: []policy.Reason{unsigned},
		Decisions: []report.Decision{
			{Policy: report.Policy{Kind: "ClusterPolicy", Name: "other"}, Rule: "passes", Effect: report.EffectAllow, Reasons: []policy.Reason{unsigned}},
			{Policy: report.Policy{Kind: "ClusterPolicy", Name: "signed"}, Rule: "by-key", Effect: report.EffectDeny, Reasons: []policy.Reason{unsigned}},
		},
	}
	silent := report.Image{Container: "debug", Written: "debug:1", Result: gate.Error}
	warned := good
	warned.Warnings = reasons("hm")
	small := report.Policy{Kind: "Policy", Namespace: "shop", Name: "small"}
	failing := report.Rule{Policy: small, Rule: "limits", Action: policy.Enforce, Result: policy.Fail, Reasons: reasons("too large")}
	audited := report.Rule{Policy: small, Rule: "labels", Action: policy.Audit, Result: policy.Fail, Reasons: reasons("no label")}
	for _, row := range []struct {
		reason string
		record report.Record
		want   verdict.Cause
		none   bool
	}{
		{
			"the container that is denied, and not the one before it", report.Record{Result: gate.Deny, Images: []report.Image{good, bad}},
			verdict.Cause{
				Container: "debug", Image: "debug:1", Policy: "ClusterPolicy/signed", Rule: "by-key",
				Code: "unsigned", Message: "no signature", Expected: "key a", Found: "none", Fix: "sign it",
			}, false,
		},
		{"an image without a reason", report.Record{Result: gate.Error, Images: []report.Image{good, silent}}, verdict.Cause{Container: "debug", Image: "debug:1"}, false},
		{
			"a rule that denies, after one that warns", report.Record{Result: gate.Deny, Images: []report.Image{good}, Rules: []report.Rule{audited, failing}},
			verdict.Cause{Policy: "Policy/shop/small", Rule: "limits", Message: "too large"}, false,
		},
		{"a rule that only warns", report.Record{Result: gate.Allow, Rules: []report.Rule{audited}}, verdict.Cause{Policy: "Policy/shop/small", Rule: "labels", Message: "no label"}, false},
		{
			"a rule that could not be evaluated", report.Record{Result: gate.Error, Rules: []report.Rule{{Policy: small, Rule: "r", Error: "undefined"}}},
			verdict.Cause{Policy: "Policy/shop/small", Rule: "r", Code: "policy-error", Message: "undefined"}, false,
		},
		{"the object as a whole", report.Record{Result: gate.Deny, Images: []report.Image{bad}, Reasons: reasons("too many images")}, verdict.Cause{Message: "too many images"}, false},
		{"a warning of an image", report.Record{Result: gate.Allow, Images: []report.Image{good, warned}}, verdict.Cause{Container: "web", Image: "web:1", Message: "hm"}, false},
		{"allowed", report.Record{Result: gate.Allow, Images: []report.Image{good}, Rules: []report.Rule{{Policy: small, Rule: "r", Result: policy.Pass}}}, verdict.Cause{}, true},
		{"a rule that does not apply", report.Record{Result: gate.Allow, Rules: []report.Rule{{Policy: small, Rule: "r", Skipped: "no", Result: policy.Fail}}}, verdict.Cause{}, true},
	} {
		got, ok := verdict.CauseOf(row.record)
		if got != row.want || ok == row.none {
			t.Errorf("%s: %+v, %t, want %+v", row.reason, got, ok, row.want)
		}
	}
}
