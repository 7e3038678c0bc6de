package markdown

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/finding"
)

// Write writes a run as a summary: the counts, a table of images, and below it denials,
// verification errors, warnings, and exceptions.
func Write(w io.Writer, of finding.Run) error {
	var p page
	fmt.Fprintf(&p, "## Image verification: %s\n\n", headline(of))
	if why := of.Unverified(); why != "" {
		fmt.Fprintf(&p, "> [!WARNING]\n> %s\n\n", code(why, maxLine))
	}
	if len(of.Objects) > 0 {
		fmt.Fprintf(&p, "%s.\n\n", of.Summary)
	}
	p.table(of)
	shown := 0
	for _, part := range []struct {
		title  string
		status finding.Status
	}{
		{"Denied", finding.Deny}, {"Could not be verified", finding.Error}, {"Warnings", finding.Warn}, {"Notes", finding.Note},
	} {
		p.part(of, part.title, &shown, func(f finding.Finding) bool { return f.Status == part.status && f.Exception == "" })
	}
	p.part(of, "Exceptions", &shown, func(f finding.Finding) bool { return f.Exception != "" })
	if _, err := io.WriteString(w, p.String()); err != nil {
		return fmt.Errorf("write findings as Markdown: %w", err)
	}
	return nil
}

// headline is the result of the run in a few words.
func headline(of finding.Run) string {
	switch s := of.Summary; {
	case of.Error != "":
		return "❌ nothing was decided"
	case s.Denied > 0:
		return fmt.Sprintf("❌ %d denied", s.Denied)
	case s.Errors > 0:
		return fmt.Sprintf("❓ %d could not be verified", s.Errors)
	case of.Unverified() != "":
		return "⚠️ nothing was verified"
	case s.Warned > 0:
		return fmt.Sprintf("✅ allowed, %d with warnings", s.Warned)
	default:
		return "✅ allowed"
	}
}

type page struct{ strings.Builder }

// row is one line of the table.
type row struct {
	result                       gate.Result
	image, object, where, digest string
}

// table writes a row for each image, and one for an object with a result of its own.
func (p *page) table(of finding.Run) {
	var rows []row
	for i := range of.Objects {
		rows = append(rows, rowsOf(&of.Objects[i])...)
	}
	if len(rows) == 0 {
		return
	}
	slices.SortStableFunc(rows, func(a, b row) int { return a.result.Compare(b.result) })
	p.WriteString("| | Image | Object | Where | Digest |\n|---|---|---|---|---|\n")
	shown := 0
	for _, r := range rows[:min(len(rows), maxRows)] {
		if p.Len() > maxTable {
			break
		}
		shown++
		fmt.Fprintf(p, "| %s | %s | %s | %s | %s |\n", mark(r.result), r.image, r.object, r.where, r.digest)
	}
	if rest := len(rows) - shown; rest > 0 {
		fmt.Fprintf(p, "\n%d more rows are left out; `-o json=FILE` has all.\n", rest)
	}
	p.WriteByte('\n')
}

func rowsOf(o *finding.Object) []row {
	rows := make([]row, 0, len(o.Images)+1)
	own := o.Result
	for i := range o.Images {
		image := &o.Images[i]
		object := o.Title
		if image.Place != "" {
			object += ", " + image.Place
		}
		if o.Title == image.Written {
			object = ""
		}
		where := o.Source
		if image.Position != nil {
			where = report.Clean(image.Position.String())
		}
		rows = append(rows, row{
			result: image.Result, image: code(image.Written, maxCell), object: code(object, maxCell),
			where: whereCell(where, o.Template), digest: code(image.Digest, maxCell),
		})
		if image.Result == o.Result {
			own = gate.Allow
		}
	}
	if own.Admits() && len(rows) > 0 {
		return rows
	}
	where := o.Source
	if o.Position != nil {
		where = report.Clean(o.Position.String())
	}
	return append(rows, row{
		result: o.Result, image: "*the object itself*", object: code(o.Title, maxCell), where: whereCell(where, o.Template),
	})
}

func whereCell(where, template string) string {
	from := code(template, maxCell)
	if from == "" {
		return code(where, maxCell)
	}
	return strings.TrimSpace(code(where, maxCell) + " from " + from)
}

func mark(r gate.Result) string {
	switch r {
	case gate.Allow:
		return "✅ allow"
	case gate.Unchecked:
		return "➖ unchecked"
	case gate.Deny:
		return "❌ deny"
	default:
		return "❓ error"
	}
}

// part writes the findings of one kind, each with its details below it.
func (p *page) part(of finding.Run, title string, shown *int, wanted func(finding.Finding) bool) {
	begun, left := false, 0
	for i := range of.Objects {
		o := &of.Objects[i]
		for _, f := range o.Findings {
			if !wanted(f) {
				continue
			}
			if *shown == maxDetails || p.Len() > maxPage {
				left++
				continue
			}
			if !begun {
				fmt.Fprintf(p, "### %s\n\n", title)
				begun = true
			}
			*shown++
			p.finding(o, f)
		}
	}
	if left > 0 {
		fmt.Fprintf(p, "%s: %d more are left out; `-o json=FILE` has all.\n\n", title, left)
	}
}

func (p *page) finding(o *finding.Object, f finding.Finding) {
	fmt.Fprintf(p, "- %s %s:", code(f.Subject(*o), maxCell), f.Verb())
	if reason := link(f); reason != "" {
		fmt.Fprintf(p, " %s", reason)
	}
	if who := f.Who(); who != "" {
		fmt.Fprintf(p, " by %s", code(who, maxCell))
	}
	fmt.Fprintf(p, "\n\n  ```text\n")
	for _, line := range f.Details(*o) {
		fmt.Fprintf(p, "  %s\n", literal(line, maxLine))
	}
	p.WriteString("  ```\n\n")
}

// link is the reason code, with a link to its page.
func link(f finding.Finding) string {
	name := string(f.Code())
	if address := report.CodePage(f.Code()); strings.HasSuffix(address, "#"+name) {
		return "[" + name + "](" + address + ")"
	}
	return code(name, maxCell)
}

// code writes untrusted text as code for a line or a table; nothing for an empty one.
func code(text string, most int) string {
	text = literal(text, most)
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// literal makes a text safe within code: it escapes terminal controls, and characters that could
// end the code or the table cell.
func literal(text string, most int) string {
	text = report.Escape(strings.Join(strings.Fields(text), " "))
	kept := 0
	for i := range text {
		kept++
		if kept > most {
			text = text[:i] + "..."
			break
		}
	}
	return strings.NewReplacer("`", `\x60`, "|", `\x7c`).Replace(text)
}
