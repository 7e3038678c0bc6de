package markdown

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/finding"
)

// annotation is one workflow command.
type annotation struct {
	object  *finding.Object
	finding finding.Finding
}

// Annotations writes a run as workflow commands of GitHub Actions, the worst first: errors for
// denials and verification errors, warnings, and notices for notes and exceptions. Equal commands
// are written once. A run without any gets a notice with its counts.
func Annotations(w io.Writer, of finding.Run) error {
	var b strings.Builder
	if why := of.Unverified(); why != "" {
		name := "warning"
		if of.Error != "" {
			name = "error"
		}
		fmt.Fprintf(&b, "::%s title=%s::%s\n", name, property("Quaymaster"), data(why))
	}
	var all []annotation
	for i := range of.Objects {
		o := &of.Objects[i]
		for _, f := range o.Findings {
			if f.Telling() {
				all = append(all, annotation{o, f})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y annotation) int { return finding.Compare(x.finding.Status, y.finding.Status) })
	lines := make([]string, 0, len(all))
	seen := map[string]bool{}
	for _, a := range all {
		if line := a.command(); !seen[line] {
			seen[line] = true
			lines = append(lines, line)
		}
	}
	for _, line := range lines[:min(len(lines), maxAnnotations)] {
		b.WriteString(line)
	}
	if of.Error == "" {
		counts := of.Summary.String()
		if rest := len(lines) - maxAnnotations; rest > 0 {
			counts += fmt.Sprintf("; %d more annotations are left out", rest)
		}
		fmt.Fprintf(&b, "::notice title=Quaymaster::%s\n", data(counts))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write findings as workflow commands: %w", err)
	}
	return nil
}

func (a annotation) command() string {
	name := "error"
	switch a.finding.Status {
	case finding.Warn:
		name = "warning"
	case finding.Note, finding.Skip:
		name = "notice"
	}
	var where string
	if at := a.finding.Position; at != nil {
		where = "file=" + property(report.Escape(at.File)) + ",line=" + strconv.Itoa(at.Line) + ",col=" + strconv.Itoa(at.Column) + ","
	}
	text := a.finding.Sentence(*a.object) + "\n" + strings.Join(a.finding.Details(*a.object), "\n")
	return "::" + name + " " + where + "title=" + property(title(a.finding)) + "::" + data(text) + "\n"
}

func title(f finding.Finding) string {
	if f.Exception != "" {
		return "Exception: " + string(f.Code())
	}
	return "Image verification: " + string(f.Code())
}

// data escapes the text of a command, and property the value of one of its properties:
// a line break would end the command, and a colon or comma the property.
func data(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

func property(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(text)
}
