package result

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quaymaster/quaymaster/report"
)

// TextOptions configure the output of a report.
type TextOptions struct {
	// FailOnly omits checks that did not fail.
	FailOnly bool
	// Detailed adds the messages of rules, also for checks that did not fail.
	Detailed bool
	// Color colours results for a terminal.
	Color bool
}

// Formats are the names of the formats besides text, the default.
func Formats() []string { return []string{"json", "yaml", "markdown", "junit"} }

// Write writes a report in a format; the empty one is Text.
func Write(w io.Writer, report Report, format string, o TextOptions) error {
	if o.FailOnly {
		report = report.failures()
	}
	switch format {
	case "":
		return writeText(w, report, o)
	case "json":
		return writeJSON(w, report)
	case "yaml":
		return writeYAML(w, report)
	case "markdown":
		return writeMarkdown(w, report, o)
	case "junit":
		return writeJUnit(w, report)
	}
	return fmt.Errorf("-o %s: want %s", format, strings.Join(Formats(), ", "))
}

// failures returns the report with the failures alone; the counts include all checks.
func (r Report) failures() Report {
	suites := r.Suites
	r.Suites = nil
	for _, s := range suites {
		checks := s.Checks
		s.Checks = nil
		for _, c := range checks {
			if c.Outcome == Failed {
				s.Checks = append(s.Checks, c)
			}
		}
		if len(s.Checks) > 0 {
			r.Suites = append(r.Suites, s)
		}
	}
	return r
}

// Summary is the last line of the text.
func (r Report) Summary() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", r.Passed, r.Failed, r.Skipped)
}

// writeText writes a table for each suite, and the counts.
func writeText(w io.Writer, all Report, o TextOptions) error {
	var b strings.Builder
	for _, s := range all.Suites {
		if len(s.Checks) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s (%s)\n", inLine(s.Name), inLine(s.Path))
		if s.Error != "" {
			fmt.Fprintf(&b, "  %s\n", strings.ReplaceAll(report.Escape(s.Error), "\n", "\n  "))
		}
		table(&b, s.Checks, o)
		b.WriteByte('\n')
	}
	b.WriteString(all.Summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// table writes the checks of a suite with their columns aligned.
func table(b *strings.Builder, checks []Check, o TextOptions) {
	rows := [][]string{{"ID", "POLICY", "RULE", "RESOURCE", "RESULT", "REASON"}}
	for i, c := range checks {
		rows = append(rows, []string{strconv.Itoa(i + 1), inLine(c.Policy), inLine(c.Rule), inLine(c.Resource), string(c.Outcome), inLine(c.Reason)})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for i, row := range rows {
		line := "  "
		for column, cell := range row {
			padded := cell + strings.Repeat(" ", widths[column]-utf8.RuneCountInString(cell)+2)
			if column == 4 && i > 0 && o.Color {
				padded = colors[checks[i-1].Outcome] + cell + "\x1b[0m" + padded[len(cell):]
			}
			line += padded
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
		if i > 0 && checks[i-1].Message != "" && (o.Detailed || checks[i-1].Outcome == Failed) {
			fmt.Fprintf(b, "      %s\n", strings.ReplaceAll(report.Escape(strings.TrimSpace(checks[i-1].Message)), "\n", "\n      "))
		}
	}
}

// inLine makes foreign text safe for one line of a terminal.
func inLine(text string) string {
	return report.Escape(strings.ReplaceAll(text, "\n", " "))
}

// colors are the terminal's for outcomes (ECMA-48, select graphic rendition).
var colors = map[Outcome]string{Passed: "\x1b[32m", Failed: "\x1b[31m", Skipped: "\x1b[33m"}
