package report_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
)

// TestExitStatus: a denial comes first, then an error, then an unchecked image.
func TestExitStatus(t *testing.T) {
	for _, row := range []struct {
		reason              string
		summary             report.Summary
		status, requireThat int // without and with --require-match
	}{
		{"nothing", report.Summary{}, 0, 0},
		{"allowed", report.Summary{Allowed: 1}, 0, 0},
		{"unchecked", report.Summary{Allowed: 1, Unchecked: 1}, 0, 1},
		{"an error outweighs unchecked", report.Summary{Errors: 1, Unchecked: 1}, 3, 3},
		{"a denial outweighs an error", report.Summary{Denied: 1, Errors: 1, Unchecked: 1}, 1, 1},
	} {
		if got := row.summary.ExitStatus(false); got != row.status {
			t.Errorf("%s: %d, want %d", row.reason, got, row.status)
		}
		if got := row.summary.ExitStatus(true); got != row.requireThat {
			t.Errorf("%s, with --require-match: %d, want %d", row.reason, got, row.requireThat)
		}
	}
}

func TestCount(t *testing.T) {
	tests := []struct {
		reason, scenario string
		want             report.Summary
		status, required int // without and with --require-match
	}{
		{"allowed", "allowed-by-key", report.Summary{Objects: 1, Images: 1, Allowed: 1}, 0, 0},
		{"denied", "unsigned", report.Summary{Objects: 1, Images: 1, Denied: 1}, 1, 1},
		{"could not be verified", "registry-down", report.Summary{Objects: 1, Images: 1, Errors: 1}, 3, 3},
		{"could not be verified, admitted", "fail-open", report.Summary{Objects: 1, Images: 1, Allowed: 1, Warned: 1}, 0, 0},
		{"only a warning", "audit", report.Summary{Objects: 1, Images: 1, Allowed: 1, Warned: 1}, 0, 0},
		{"a skipped rule matches", "skipped", report.Summary{Objects: 1, Images: 1, Allowed: 1}, 0, 0},
		{"no policy matches it", "no-policy", report.Summary{Objects: 1, Images: 1, Unchecked: 1}, 0, 1},
		{"a rule that could not be evaluated may match the image", "rule-error", report.Summary{Objects: 1, Images: 1, Errors: 1}, 3, 3},
		{"the object has no image that could be read", "malformed", report.Summary{Objects: 1, Denied: 1}, 1, 1},
		{"no image", "no-images", report.Summary{Objects: 1}, 0, 0},
		{"a denial outweighs an error", "pod", report.Summary{Objects: 1, Images: 11, Allowed: 7, Denied: 2, Errors: 1, Warned: 1, Unchecked: 1}, 1, 1},
	}
	for _, test := range tests {
		t.Run(test.scenario, func(t *testing.T) {
			got := report.Count(find(t, test.scenario).outcomes(t))
			if got != test.want {
				t.Errorf("%s: got %+v, want %+v", test.reason, got, test.want)
			}
			if status := got.ExitStatus(false); status != test.status {
				t.Errorf("%s: exit status %d, want %d", test.reason, status, test.status)
			}
			if status := got.ExitStatus(true); status != test.required {
				t.Errorf("%s: exit status %d where a match is required, want %d", test.reason, status, test.required)
			}
		})
	}
}

func TestCountTakesNoUnknownAnswerForYes(t *testing.T) {
	for _, answer := range []gate.Result{"", "maybe"} {
		got := report.Count([]gate.Outcome{{Result: answer, Verdicts: []gate.Verdict{{Result: answer}}}})
		if got.Allowed != 0 || got.ExitStatus(false) == 0 {
			t.Errorf("the answer %q counts as %+v", answer, got)
		}
	}
}

func TestCountSeesWarningsOfObjects(t *testing.T) {
	got := report.Count([]gate.Outcome{{Result: gate.Allow, Warnings: []policy.Reason{{Code: policy.PolicyError}}}})
	if got.Warned != 1 || got.ExitStatus(true) != 0 {
		t.Errorf("got %+v", got)
	}
}
