package review

import (
	"bytes"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/report"
)

const (
	// maxPage bounds the page in bytes: GitHub shows no comment of more than 64 KiB.
	maxPage = 60 << 10
	// maxText bounds a text of a policy in bytes.
	maxText = 300
)

// page is a page in Markdown.
type page struct {
	bytes.Buffer
	left int // the parts that are left out
}

// Markdown writes the review as a page.
func Markdown(policies []Policy) []byte {
	p := &page{}
	sum := Sum(policies)
	fmt.Fprintf(p, "# Policies in CEL\n\n%s\n\n", headline(&sum))
	p.table(policies)
	p.staying(policies)
	p.strict(policies)
	p.differences(policies)
	p.untried(policies)
	if p.left > 0 {
		fmt.Fprintf(p, "%d more lines are left out: `--report json` has all.\n", p.left)
	}
	return bytes.TrimRight(p.Bytes(), "\n")
}

func headline(s *Summary) string {
	text := fmt.Sprintf("%d of %d policies are converted", s.Converted, s.Policies)
	if s.InPart > 0 {
		text += fmt.Sprintf(", %d in part", s.InPart)
	}
	if s.Staying > 0 {
		text += fmt.Sprintf(", %d stay as they are", s.Staying)
	}
	text += "."
	switch {
	case s.Compared == 0 && s.Failed == 0:
		return text + " The forms were not compared."
	case s.Compared == 0:
		return text + " No forms could be compared."
	case s.Different == 0:
		text += fmt.Sprintf(" **No difference** between %d policies and their results", s.Compared)
	default:
		text += fmt.Sprintf(" **%d of %d policies differ** from their results", s.Different, s.Compared)
	}
	text += fmt.Sprintf(" for %d requests, of which rules matched %d.", s.Objects, s.Matched)
	if s.Failed > 0 {
		text += fmt.Sprintf(" %d could not be compared.", s.Failed)
	}
	return text
}

// line writes a line, if there is room for it.
func (p *page) line(format string, values ...any) {
	if p.Len() > maxPage {
		p.left++
		return
	}
	fmt.Fprintf(p, format+"\n", values...)
}

func (p *page) table(policies []Policy) {
	p.line("| policy | result | comparison |\n|---|---|---|")
	for i := range policies {
		of := &policies[i]
		results := make([]string, len(of.Results))
		for i, result := range of.Results {
			results[i] = code(result)
		}
		result := strings.Join(results, ", ")
		switch of.State() {
		case Staying:
			result = "stays"
		case InPart:
			result += fmt.Sprintf(", without %d parts", len(of.Stays))
		}
		p.line("| %s | %s | %s |", code(of.Kind+"/"+of.Policy), result, of.comparison())
	}
	p.line("")
}

// comparison is the cell of the result of a comparison.
func (p *Policy) comparison() string {
	switch {
	case p.Error != "":
		return "failed: " + code(p.Error)
	case p.Report == nil:
		return "–"
	case p.Equal() && p.Known > 0:
		return fmt.Sprintf("equal for %d requests, but for %d with the text of a pattern as a value", p.Objects, p.Known)
	case p.Equal():
		return fmt.Sprintf("equal for %d requests, %d matched", p.Objects, p.Matched)
	case p.Differing == 0:
		return "**other times**"
	}
	return fmt.Sprintf("**%d of %d requests differ**", p.Differing, p.Objects)
}

// section writes a heading before the first of its lines.
func (p *page) section(policies []Policy, title string, lines func(of *Policy) []string) {
	begun := false
	for i := range policies {
		for _, text := range lines(&policies[i]) {
			if !begun {
				p.line("## %s\n", title)
				begun = true
			}
			p.line("%s", text)
		}
	}
	if begun {
		p.line("")
	}
}

func (p *page) staying(policies []Policy) {
	p.section(policies, "Parts that stay", func(of *Policy) (lines []string) {
		for _, problem := range of.Stays {
			at := code(of.Policy)
			if problem.Path != "" {
				at += ", " + code(problem.Path)
			}
			lines = append(lines, fmt.Sprintf("- %s: %s", at, plain(problem.Found)))
		}
		return lines
	})
}

func (p *page) strict(policies []Policy) {
	p.section(policies, "Updates that are denied from now on", func(of *Policy) (lines []string) {
		for _, rule := range of.Strict {
			lines = append(lines, fmt.Sprintf("- %s, rule %s: updates of objects that violated it before", code(of.Policy), code(rule)))
		}
		return lines
	})
}

func (p *page) untried(policies []Policy) {
	p.section(policies, "Results that no request had", func(of *Policy) (lines []string) {
		if of.Report == nil {
			return nil
		}
		for _, rule := range of.Untried {
			lines = append(lines, fmt.Sprintf("- %s, rule %s", code(of.Policy), code(rule)))
		}
		return lines
	})
}

func (p *page) differences(policies []Policy) {
	p.section(policies, "Differences", func(of *Policy) (lines []string) {
		if of.Report == nil {
			return nil
		}
		for _, at := range of.Schedules {
			lines = append(lines, fmt.Sprintf("- %s deletes at another time: %s", code(of.Policy), plain(at)))
		}
		for i := range of.Differences {
			d := &of.Differences[i]
			lines = append(lines, fmt.Sprintf("### %s: another %s\n\n%s\n%s\n%s", code(of.Policy), d.By,
				block("The smallest request that was found:", d.Sample), block("The source:", d.Source), block("The result:", d.Result)))
		}
		return lines
	})
}

// block is a value as YAML.
func block(title string, value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		text = []byte(err.Error())
	}
	fence := "```"
	for bytes.Contains(text, []byte(fence)) {
		fence += "`"
	}
	return title + "\n\n" + fence + "yaml\n" + report.Escape(strings.TrimRight(string(text), "\n")) + "\n" + fence + "\n"
}

// code is a text of a policy as code, in a cell of a table, too.
func code(text string) string {
	text = strings.NewReplacer("\n", " ", "|", "\\|").Replace(report.Escape(limit.Text(text, maxText)))
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}

// plain is a text of a policy in a sentence.
func plain(text string) string {
	return strings.NewReplacer("\n", " ", "<", "\\<", "*", "\\*", "_", "\\_", "[", "\\[", "`", "\\`", "|", "\\|", "#", "\\#", "@", "\\@").Replace(
		report.Escape(limit.Text(text, maxText)))
}
