package verdict_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/inventory/internal/verdict"
)

func reasons(message string) []policy.Reason { return []policy.Reason{{Message: message}} }

// TestOfImage has the verdict for an image, and its reasons.
func TestOfImage(t *testing.T) {
	for _, row := range []struct {
		reason string
		image  report.Image
		want   verdict.Verdict
		tells  string
	}{
		{"allowed, without a reason", report.Image{Result: gate.Allow, Matched: true, Reasons: reasons("fine")}, verdict.Allowed, ""},
		{"no policy matches it", report.Image{Result: gate.Allow}, verdict.Unchecked, ""},
		{"an override lets it in", report.Image{Result: gate.Allow, Override: "o"}, verdict.Allowed, ""},
		{"a warning", report.Image{Result: gate.Allow, Matched: true, Warnings: reasons("hm")}, verdict.Warned, "hm"},
		{
			"a failure under audit", report.Image{Result: gate.Allow, Matched: true, Decisions: []report.Decision{{Effect: report.EffectWarn, Reasons: reasons("audited")}}},
			verdict.Warned, "audited",
		},
		{"denied, whatever warns", report.Image{Result: gate.Deny, Matched: true, Reasons: reasons("no"), Warnings: reasons("hm")}, verdict.Denied, "no"},
		{"could not be verified", report.Image{Result: gate.Error, Matched: true, Reasons: reasons("timeout")}, verdict.Errored, "timeout"},
	} {
		got := verdict.OfImage(&row.image)
		tells := ""
		if told := verdict.Telling(&row.image, got); len(told) > 0 {
			tells = told[0].Message
		}
		if got != row.want || tells != row.tells {
			t.Errorf("%s: %s because of %q, want %s because of %q", row.reason, got, tells, row.want, row.tells)
		}
	}
}

// TestOf has the word for an object.
func TestOf(t *testing.T) {
	passed := report.Image{Result: gate.Allow, Matched: true}
	warned := report.Image{Result: gate.Allow, Matched: true, Warnings: reasons("hm")}
	for _, row := range []struct {
		reason   string
		occasion report.Occasion
		record   report.Record
		want     verdict.Verdict
	}{
		{"its image is allowed", report.Occasion{}, report.Record{Result: gate.Allow, Images: []report.Image{passed, {Result: gate.Allow}}}, verdict.Allowed},
		{"one of its images is warned of", report.Occasion{}, report.Record{Result: gate.Allow, Images: []report.Image{passed, warned}}, verdict.Warned},
		{"it is warned of itself", report.Occasion{}, report.Record{Result: gate.Allow, Warnings: reasons("hm")}, verdict.Warned},
		{"a rule fails that denies nothing", report.Occasion{}, report.Record{Result: gate.Allow, Rules: []report.Rule{{Result: policy.Fail}}}, verdict.Warned},
		{"only a rule matches it", report.Occasion{}, report.Record{Result: gate.Allow, Rules: []report.Rule{{Result: policy.Pass}}}, verdict.Allowed},
		{"no policy matches it", report.Occasion{}, report.Record{Result: gate.Allow, Images: []report.Image{{Result: gate.Allow}}}, verdict.Unchecked},
		{"it is denied", report.Occasion{}, report.Record{Result: gate.Deny, Images: []report.Image{passed}}, verdict.Denied},
		{"could not be verified", report.Occasion{}, report.Record{Result: gate.Error}, verdict.Errored},
		{"undecided", report.Occasion{Undecided: "too busy"}, report.Record{}, verdict.Errored},
	} {
		if got := verdict.Of(row.occasion, row.record); got != row.want {
			t.Errorf("%s: %s, want %s", row.reason, got, row.want)
		}
	}
}

// TestCounts counts every word once.
func TestCounts(t *testing.T) {
	var tally verdict.Tally
	for _, v := range append(verdict.Verdicts(), "other") {
		tally.Add(v)
	}
	if tally != (verdict.Tally{Allowed: 1, Warned: 1, Unchecked: 1, Denied: 1, Errored: 1}) {
		t.Errorf("one of each is counted as %+v", tally)
	}
	var results verdict.Results
	for _, row := range []struct {
		result policy.Result
		warns  bool
		kind   verdict.Kind
	}{
		{policy.Pass, false, verdict.Pass}, {policy.Fail, false, verdict.Fail}, {policy.Fail, true, verdict.Warn},
		{policy.Indeterminate, true, verdict.Error}, {policy.Skipped, true, verdict.Skip},
	} {
		got := verdict.OfResult(row.result, row.warns)
		results.Add(got)
		if got != row.kind {
			t.Errorf("%s (warns: %v) is %d, want %d", row.result, row.warns, got, row.kind)
		}
	}
	if results != (verdict.Results{Pass: 1, Fail: 1, Warn: 1, Error: 1, Skip: 1}) {
		t.Errorf("one of each is counted as %+v", results)
	}
}
