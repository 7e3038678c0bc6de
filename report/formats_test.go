package report_test

import (
	"io"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/finding"
	"github.com/quaymaster/quaymaster/report/junit"
	"github.com/quaymaster/quaymaster/report/markdown"
	"github.com/quaymaster/quaymaster/report/sarif"
)

// formats are what CI systems read, with the endings of their files.
var formats = map[string]func(io.Writer, finding.Run) error{
	"sarif":  func(w io.Writer, of finding.Run) error { return sarif.Write(w, of, "1.2.3") },
	"xml":    junit.Write,
	"md":     markdown.Write,
	"github": markdown.Annotations,
}

// TestFormats compares every format of every scenario with its golden file.
func TestFormats(t *testing.T) {
	outcomes := map[string][]gate.Outcome{"everything": all(t), "none": nil}
	for _, s := range scenarios {
		outcomes[s.name] = s.outcomes(t)
	}
	for _, m := range mirroredCases(t) {
		outcomes["mirror-"+m.name] = []gate.Outcome{m.outcome(t)}
	}
	for name, of := range outcomes {
		for ending, write := range formats {
			golden(t, "formats/"+name+"."+ending, func(w io.Writer) error { return write(w, finding.Of(report.NewList(of))) })
		}
	}
	failed := report.List{Error: "trusted root: the network is \x1b[31mdown\n::error::"}
	for ending, write := range formats {
		golden(t, "formats/failed."+ending, func(w io.Writer) error { return write(w, finding.Of(failed)) })
	}
}

// TestWorstFindingIsTheAnswer: no format has less, or more, than the decision.
func TestWorstFindingIsTheAnswer(t *testing.T) {
	outcomes := all(t)
	for _, m := range mirroredCases(t) {
		outcomes = append(outcomes, m.outcome(t))
	}
	outcomes = append(outcomes, gate.Outcome{}, gate.Outcome{Result: gate.Deny}, foreign("x"))
	run := finding.Of(report.NewList(outcomes))
	for i, o := range run.Objects {
		worst := finding.Skip
		for _, f := range o.Findings {
			if finding.Compare(f.Status, worst) < 0 {
				worst = f.Status
			}
			if len(f.Reasons) == 0 {
				t.Errorf("%s: a finding without a reason", o.Title)
			}
		}
		want := map[gate.Result][]finding.Status{
			gate.Allow: {finding.Skip, finding.Pass, finding.Note, finding.Warn}, gate.Unchecked: {finding.Skip}, gate.Deny: {finding.Deny}, gate.Error: {finding.Error}, "": {finding.Error},
		}[outcomes[i].Result]
		found := false
		for _, status := range want {
			found = found || status == worst
		}
		if !found {
			t.Errorf("%s: the result is %q and the worst finding %q", o.Title, outcomes[i].Result, worst)
		}
	}
}

// TestNothingVerified: a run that verified nothing never looks like a clean one.
func TestNothingVerified(t *testing.T) {
	for name, c := range map[string]struct {
		list  report.List
		wants bool
	}{
		"nothing at all":   {report.NewList(nil), true},
		"an error":         {report.List{Error: "no network"}, true},
		"no images":        {report.NewList(find(t, "no-images").outcomes(t)), true},
		"no policy":        {report.NewList(find(t, "no-policy").outcomes(t)), true},
		"left alone":       {report.NewList(find(t, "skipped").outcomes(t)), true},
		"something proved": {report.NewList(find(t, "allowed-by-key").outcomes(t)), false},
		"something denied": {report.NewList(find(t, "unsigned").outcomes(t)), false},
	} {
		run := finding.Of(c.list)
		if got := run.Unverified(); (got != "") != c.wants {
			t.Errorf("%s: %q", name, got)
		}
		for ending, write := range formats {
			got := written(t, func(w io.Writer) error { return write(w, run) })
			if strings.Contains(got, "nothing was ") != c.wants {
				t.Errorf("%s as %s:\n%s", name, ending, got)
			}
		}
	}
}
