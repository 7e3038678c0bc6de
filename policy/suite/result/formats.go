package result

import (
	"encoding/json"
	"encoding/xml"
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

// The elements of JUnit's XML, as CI systems read it.
type (
	junit struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		File     string      `xml:"file,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string      `xml:"classname,attr"`
		Name    string      `xml:"name,attr"`
		Failure *junitWords `xml:"failure"`
		Skipped *junitWords `xml:"skipped"`
	}
	junitWords struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// writeJUnit writes JUnit's XML.
func writeJUnit(w io.Writer, report Report) error {
	var all junit
	for _, s := range report.Suites {
		if len(s.Checks) == 0 {
			continue
		}
		one := junitSuite{Name: legal(s.Name), File: legal(s.Path)}
		for _, c := range s.Checks {
			test := junitCase{Class: legal(strings.Trim(c.Policy+"."+c.Rule, ".")), Name: legal(c.Resource)}
			said := &junitWords{Message: legal(c.Reason), Text: legal(c.Message)}
			one.Tests++
			switch c.Outcome {
			case Failed:
				if s.Error != "" {
					said.Text = legal(s.Error)
				}
				test.Failure = said
				one.Failures++
			case Skipped:
				test.Skipped = said
				one.Skipped++
			}
			one.Cases = append(one.Cases, test)
		}
		all.Tests, all.Failures, all.Skipped = all.Tests+one.Tests, all.Failures+one.Failures, all.Skipped+one.Skipped
		all.Suites = append(all.Suites, one)
	}
	text, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(text)+"\n")
	return err
}

// legal removes the characters that XML 1.0 does not allow.
func legal(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x20 && r != '\t' && r != '\n' && r != '\r' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, text)
}
