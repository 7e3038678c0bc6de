package scan

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/preview"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/findings"
)

// scanned is the result of a scan, in verify's formats, with its own text and its own reports.
type scanned struct {
	output.Verdicts
	summary scan.Summary
	found   *findings.Findings
	left    []scan.LeftOut
	all     bool // all findings of workloads
	// deletions are the next runs of policies that delete; nil for none.
	deletions *preview.Preview
}

// refuse adds kinds that could not be listed.
func (s *scanned) refuse(refused []scan.RefusedKind) {
	for _, kind := range refused {
		if !slices.ContainsFunc(s.summary.Refused, func(r scan.RefusedKind) bool { return r.Kind == kind.Kind }) {
			s.summary.Refused = append(s.summary.Refused, kind)
		}
	}
}

// newScanned keeps the outcomes for the formats that need them.
func newScanned(summary scan.Summary, found *findings.Findings, left []scan.LeftOut) *scanned {
	s := &scanned{summary: summary, found: found, left: left}
	for i := range found.Decided {
		s.Outcomes = append(s.Outcomes, found.Decided[i].Outcome)
	}
	return s
}

// Outputs are the output flags without vsa: a summary of running workloads attests nothing.
func Outputs() output.Flags {
	return output.Flags{Excluded: output.VSA}
}

// Write implements output.Result.
func (s *scanned) Write(w io.Writer, to output.Destination) error {
	switch {
	case to.Format == output.Text && s.Failure == nil:
		return s.text(w)
	case to.Format == output.JSON && s.Failure != nil:
		return command.WriteJSON(w, scanFailure{report.APIVersion, "Scan", s.Reason()})
	case to.Format == output.JSON:
		return command.WriteJSON(w, s.report())
	case to.Format == output.PolicyReport && s.Failure == nil:
		return policyreport.Write(w, policyreport.PolicyReports, s.found.Decided)
	case to.Format == output.OpenReports && s.Failure == nil:
		return policyreport.Write(w, policyreport.OpenReports, s.found.Decided)
	}
	return s.Verdicts.Write(w, to)
}

// scanReport is its JSON, version report.APIVersion.
type scanReport struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Time       time.Time           `json:"time"`
	Summary    scanSummary         `json:"summary"`
	Rules      []*findings.Rule    `json:"rules"`
	Held       []*findings.Finding `json:"held"`
	HeldMore   int                 `json:"heldMore,omitempty"` // beyond the bound
	LeftOut    []scanLeftOut       `json:"policiesLeftOut,omitempty"`
	NotListed  []scanNotListed     `json:"notListed,omitempty"`
	Deletions  *preview.Preview    `json:"deletions,omitempty"`
}

type scanSummary struct {
	Kinds      int     `json:"kinds"`
	Objects    int     `json:"objects"`
	Matched    int     `json:"matched"`
	Denied     int     `json:"denied"`
	Errors     int     `json:"errors"`
	Excluded   int     `json:"excluded"`
	Unreadable int     `json:"unreadable"`
	Seconds    float64 `json:"seconds"`
}

type scanNotListed struct {
	Kind string `json:"kind"`
	Why  string `json:"why"`
}

type scanLeftOut struct {
	Policy string `json:"policy"`
	Why    string `json:"why"`
}

func (s *scanned) report() scanReport {
	r := scanReport{
		APIVersion: report.APIVersion, Kind: "Scan", Time: s.summary.Began.UTC(), Deletions: s.deletions, Rules: s.found.Rules(),
		Held: s.found.Sorted(), HeldMore: s.found.LeftOut,
		Summary: scanSummary{
			Kinds: s.summary.Kinds, Objects: s.summary.Objects, Matched: s.summary.Matched, Denied: s.summary.Denied, Errors: s.summary.Errors,
			Excluded: s.summary.Excluded, Unreadable: s.summary.Unreadable, Seconds: s.summary.Duration.Seconds(),
		},
	}
	for _, left := range s.left {
		r.LeftOut = append(r.LeftOut, scanLeftOut{left.Policy.ID(), left.Why})
	}
	for _, refused := range s.summary.Refused {
		r.NotListed = append(r.NotListed, scanNotListed{refused.Kind.String(), refused.Err.Error()})
	}
	return r
}

// scanFailure is the JSON of a failed round.
type scanFailure struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Error      string `json:"error"`
}

// maxRows bounds the rows of the table unless all are requested.
const maxRows = 50

// text writes a table of the workloads that would be denied now, and one of the rules.
func (s *scanned) text(w io.Writer) error {
	var b strings.Builder
	held := s.found.Sorted()
	shown := held
	if !s.all && len(held) > maxRows {
		shown = held[:maxRows]
	}
	if len(shown) > 0 {
		table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "NOW\tWORKLOAD\tOBJECTS\tPOLICY\tWHAT")
		for _, h := range shown {
			fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\n", wordOf(h.Result), inRow(placeOf(h)), h.Objects,
				inRow(ruleOf(h.Policy, h.Rule)), inRow(textOf(h)))
		}
		_ = table.Flush() // the writer is a buffer
		if len(shown) < len(held) {
			fmt.Fprintf(&b, "... and %d more: --all shows them\n", len(held)-len(shown))
		}
		b.WriteString("\n")
	}
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if counts := s.found.Rules(); len(counts) > 0 {
		fmt.Fprintln(table, "POLICY\tPASS\tFAIL\tWARN\tERROR\tSKIP\t")
		for _, c := range counts {
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%s\n", inRow(ruleOf(c.Policy, c.Rule)), c.Pass, c.Fail, c.Warn, c.Error, c.Skip, ifAudited(c.Enforced))
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush() // the writer is a buffer
	if s.deletions != nil {
		s.deletions.Text(&b)
		b.WriteString("\n")
	}
	s.close(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// close writes the number of scanned objects, and the ones that were skipped.
func (s *scanned) close(b *strings.Builder) {
	for _, left := range s.left {
		fmt.Fprintf(b, "skipped policy %s: %s\n", inRow(left.Policy.ID()), inRow(left.Why))
	}
	for _, refused := range s.summary.Refused {
		fmt.Fprintf(b, "not listed: %s: %s\n", refused.Kind, inRow(refused.Err.Error()))
	}
	if s.summary.Unreadable > 0 {
		fmt.Fprintf(b, "not evaluated: %s that cannot be read\n", command.Count(s.summary.Unreadable, "object"))
	}
	if s.found.LeftOut > 0 {
		fmt.Fprintf(b, "%s beyond the bound were left out\n", command.Count(s.found.LeftOut, "finding"))
	}
	fmt.Fprintf(b, "%s of %s in %s: policies match %d; now %d would be denied, and %d could not be verified\n",
		command.Count(s.summary.Objects, "object"), command.Count(s.summary.Kinds, "kind"), s.summary.Duration.Round(time.Millisecond),
		s.summary.Matched, s.summary.Denied, s.summary.Errors)
}

func wordOf(answer gate.Result) string {
	switch answer {
	case gate.Deny:
		return "denied"
	case gate.Error:
		return "error"
	}
	return "audit"
}

func placeOf(h *findings.Finding) string {
	if h.Namespace == "" {
		return h.Kind + "/" + h.Name
	}
	return h.Namespace + " " + h.Kind + "/" + h.Name
}

func ruleOf(policy, rule string) string {
	_, name, _ := strings.Cut(policy, "/")
	if rule == "" || rule == name {
		return name
	}
	return name + "/" + rule
}

func ifAudited(enforced bool) string {
	if enforced {
		return ""
	}
	return "(audit)"
}

func textOf(h *findings.Finding) string {
	words := h.Message
	if h.Code != "" && !strings.Contains(words, string(h.Code)) {
		words = string(h.Code) + ": " + words
	}
	if h.Image != "" {
		words = h.Image + ": " + words
	}
	return words
}

// exit returns the exit status for the scan.
func (s *scanned) exit() error {
	switch {
	case s.summary.Denied > 0:
		return command.Status(command.ExitDenied)
	case !s.summary.Complete(), s.deletions != nil && s.deletions.Incomplete():
		return command.Status(command.ExitError)
	}
	return nil
}

func limitsOf(in *setup.Inputs) preview.Limits {
	if in.Reader != nil {
		return preview.LimitsOf(in.Reader.Configuration())
	}
	return preview.Defaults("quaymaster")
}
