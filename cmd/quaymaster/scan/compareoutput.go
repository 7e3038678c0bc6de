package scan

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/compare"
	"github.com/quaymaster/quaymaster/scan/findings"
)

// compared is the result of a comparison.
type compared struct {
	output.Verdicts
	comparison compare.Comparison
	// untold are the resources that could not be read.
	untold []string
	all    bool // rows
}

// Write implements output.Result.
func (c *compared) Write(w io.Writer, to output.Destination) error {
	switch {
	case to.Format == output.JSON && c.Failure != nil:
		return command.WriteJSON(w, scanFailure{report.APIVersion, "Comparison", c.Reason()})
	case to.Format == output.JSON:
		return command.WriteJSON(w, compareReport{report.APIVersion, "Comparison", c.comparison, c.untold})
	case c.Failure == nil:
		return c.text(w)
	}
	return c.Verdicts.Write(w, to)
}

// compareReport is its JSON, version report.APIVersion.
type compareReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	compare.Comparison
	NotRead []string `json:"notRead,omitempty"`
}

// titles are the headings of the classes.
func titles() map[compare.Class]string {
	return map[compare.Class]string{
		compare.WronglyAdmitted: "ADMITTED THERE, AND DENIED HERE FOR A VERIFIED REASON",
		compare.ErrorHere:       "NOT VERIFIED HERE: NEITHER SIGNED NOR UNSIGNED IS KNOWN",
		compare.DeniedOnlyThere: "DENIED THERE, AND ADMITTED HERE",
		compare.ErrorThere:      "NOT VERIFIED THERE",
		compare.OnlyHere:        "DECIDED ONLY HERE",
		compare.OnlyThere:       "DECIDED ONLY THERE",
	}
}

// text writes a table for each class, and the totals.
func (c *compared) text(w io.Writer) error {
	var b strings.Builder
	shown := c.comparison.Differences
	if !c.all && len(shown) > maxRows {
		shown = shown[:maxRows]
	}
	for _, class := range compare.Classes() {
		classTable(&b, class, shown)
	}
	if left := len(c.comparison.Differences) - len(shown); left > 0 {
		fmt.Fprintf(&b, "... and %d more: --all shows them\n\n", left)
	}
	c.close(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

func classTable(b *strings.Builder, class compare.Class, rows []compare.Difference) {
	table := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	told := false
	for i := range rows {
		d := &rows[i]
		if d.Class != class {
			continue
		}
		if !told {
			fmt.Fprintf(b, "%s\n", titles()[class])
			fmt.Fprintln(table, "WORKLOAD\tOBJECTS\tPOLICY\tIMAGE\tTHERE\tHERE")
			told = true
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\n", inRow(placeOf(&findings.Finding{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name})), d.Objects,
			inRow(ruleOf(d.Policy, d.Rule)), inRow(imageOf(d)), sideText(d.Theirs), sideText(d.Ours))
	}
	if told {
		_ = table.Flush() // the writer is a buffer
		b.WriteString("\n")
	}
}

// inRow makes foreign text safe for a row of a table: reports choose their subject's name
// freely, with line breaks.
func inRow(text string) string { return report.Escape(strings.ReplaceAll(text, "\n", " ")) }

func imageOf(d *compare.Difference) string {
	if d.Image == "" {
		return "-"
	}
	return d.Image
}

// maxCell bounds a message in a cell, in bytes; -o json has the whole message.
const maxCell = 120

func sideText(s *compare.Side) string {
	if s == nil {
		return "-"
	}
	words := []string{string(s.Verdict)}
	if s.Engine != compare.Quaymaster {
		words = []string{string(s.Engine) + " " + string(s.Verdict)}
	}
	if s.Audited {
		words[0] += " (audit)"
	}
	if s.Stale {
		words[0] += " (stale)"
	}
	if s.Code != "" {
		words = append(words, s.Code)
	}
	if message := report.FirstLine(s.Message); message != "" {
		if len(message) > maxCell {
			message = strings.ToValidUTF8(message[:maxCell], "") + "..."
		}
		words = append(words, message)
	}
	return inRow(strings.Join(words, ": "))
}

// close writes the totals, and the sources that could not be read.
func (c *compared) close(b *strings.Builder) {
	s := &c.comparison.Summary
	for _, untold := range c.untold {
		fmt.Fprintf(b, "not read: %s\n", inRow(untold))
	}
	if s.Unreadable > 0 {
		fmt.Fprintf(b, "not read: %d objects or lines that make no sense\n", s.Unreadable)
	}
	if s.LeftOut > 0 {
		fmt.Fprintf(b, "%d verdicts more than are kept were left out\n", s.LeftOut)
	}
	for _, cost := range c.comparison.Costs {
		fmt.Fprintf(b, "%s took %.1f ms a call, by %s, of %d calls", cost.Engine, cost.Milliseconds, account(cost.By), cost.Calls)
		if cost.Requests != nil {
			fmt.Fprintf(b, ", with %d requests to registries", *cost.Requests)
		}
		b.WriteString("\n")
	}
	if saved := c.comparison.Saved; saved.Milliseconds != nil {
		fmt.Fprintf(b, "saved: %.1f ms a call, by %s\n", *saved.Milliseconds, account(saved.By))
	}
	for _, untold := range c.comparison.Saved.Unreported {
		fmt.Fprintf(b, "unreported: %s\n", untold)
	}
	fmt.Fprintf(b, "%d verdicts of ours, %d of theirs: %d agree, %d could be looked at by neither\n", s.Ours, s.Theirs, s.Agree, s.NeitherLooked)
	fmt.Fprintf(b, "%d wrongly admitted there, %d could not be verified here, %d denied only there, %d could not be verified there, %d only here, %d only there",
		s.Differ[compare.WronglyAdmitted], s.Differ[compare.ErrorHere], s.Differ[compare.DeniedOnlyThere], s.Differ[compare.ErrorThere],
		s.Differ[compare.OnlyHere], s.Differ[compare.OnlyThere])
	if s.Stale > 0 {
		fmt.Fprintf(b, "; %d rest on verdicts from before the policy was changed", s.Stale)
	}
	fmt.Fprintf(b, "\nwe would deny %d that the other does not\n", s.Newly)
}

func account(by compare.Account) string {
	if by == compare.ByItself {
		return "its own account"
	}
	return "the account of " + string(by)
}

// exit returns the exit status for the comparison.
func (c *compared) exit() error {
	s := &c.comparison.Summary
	switch {
	case s.Newly > 0:
		return command.Status(command.ExitDenied)
	case s.NewErrors > 0 || s.Differ[compare.ErrorHere] > 0 || s.Unreadable > 0 || s.LeftOut > 0 || len(c.untold) > 0:
		return command.Status(command.ExitError)
	}
	return nil
}
