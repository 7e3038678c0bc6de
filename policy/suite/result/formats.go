package result

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/report"
)

// writeJSON writes the report as one document.
func writeJSON(w io.Writer, report Report) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report.complete())
}

// writeYAML writes the same document as YAML.
func writeYAML(w io.Writer, report Report) error {
	text, err := yaml.Marshal(report.complete())
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// complete returns the report with empty lists in place of null.
func (r Report) complete() Report {
	if r.Suites == nil {
		r.Suites = []Suite{}
	}
	for i := range r.Suites {
		if r.Suites[i].Checks == nil {
			r.Suites[i].Checks = []Check{}
		}
	}
	return r
}

// writeMarkdown writes a table for each suite, in GitHub's Markdown.
func writeMarkdown(w io.Writer, all Report, o TextOptions) error {
	var b strings.Builder
	for _, s := range all.Suites {
		if len(s.Checks) == 0 {
			continue
		}
		fmt.Fprintf(&b, "### %s\n\n", cell(s.Name))
		if s.Error != "" {
			fmt.Fprintf(&b, "%s\n\n", cell(s.Error))
		}
		b.WriteString("| ID | POLICY | RULE | RESOURCE | RESULT | REASON |")
		rule := "|---|---|---|---|---|---|"
		if o.Detailed {
			b.WriteString(" MESSAGE |")
			rule += "---|"
		}
		b.WriteString("\n" + rule + "\n")
		for i, c := range s.Checks {
			cells := []string{strconv.Itoa(i + 1), c.Policy, c.Rule, c.Resource, string(c.Outcome), c.Reason}
			if o.Detailed {
				cells = append(cells, c.Message)
			}
			for _, text := range cells {
				b.WriteString("| " + cell(text) + " ")
			}
			b.WriteString("|\n")
		}
		b.WriteByte('\n')
	}
	b.WriteString(all.Summary() + "\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// cell escapes text for one cell, without links or images.
func cell(text string) string {
	text = report.Escape(strings.ReplaceAll(strings.TrimSpace(text), "\r\n", "\n"))
	return strings.NewReplacer("\\", "\\\\", "|", "\\|", "[", "\\[", "\n", "<br>", "<", "&lt;", "&", "&amp;").Replace(text)
}
