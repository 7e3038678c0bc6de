package convert

import (
	"bytes"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/policy/convert/review"
	"github.com/quaymaster/quaymaster/report"
)

// writeChecked writes the comparison as text, with a summary at its end.
func writeChecked(t command.Terminal, policies []review.Policy) error {
	var text bytes.Buffer
	for i := range policies {
		if err := writePolicy(&text, &policies[i]); err != nil {
			return err
		}
	}
	sum := review.Sum(policies)
	fmt.Fprintf(&text, "%d policies: %d compared, %d differ, %d failed, %d stay; %d requests, %d matched\n",
		sum.Policies, sum.Compared, sum.Different, sum.Failed, sum.Staying, sum.Objects, sum.Matched)
	_, err := t.Out.Write(text.Bytes())
	return err
}

func writePolicy(text *bytes.Buffer, p *review.Policy) error {
	line := func(format string, values ...any) { fmt.Fprintf(text, format+"\n", values...) }
	name := report.Escape(p.Policy)
	switch {
	case p.Error != "":
		line("%s: not compared: %s", name, report.Escape(p.Error))
		return nil
	case p.Report == nil:
		line("%s: stays as it is", name)
	case p.Differing > 0:
		line("%s: %d of %d objects differ", name, p.Differing, p.Objects)
	case !p.Equal():
		line("%s: other times of deletions", name)
	default:
		line("%s: no difference for %d objects (%d matched)", name, p.Objects, p.Matched)
	}
	for _, part := range p.Stays {
		line("  not converted: %s: %s", report.Escape(part.Path), report.Escape(part.Found))
	}
	if p.Report == nil {
		return nil
	}
	if p.Known > 0 {
		line("  %d objects have the text of a pattern as a value, which the source alone takes", p.Known)
	}
	for _, at := range p.Schedules {
		line("  deletes at another time: %s", report.Escape(at))
	}
	for _, rule := range p.Untried {
		line("  no object had this result: %s", report.Escape(rule))
	}
	for i := range p.Differences {
		d := &p.Differences[i]
		line("  a different %s for this request:", d.By)
		for _, part := range []struct {
			title string
			value any
			by    string
		}{{"", d.Sample, "    "}, {"    source:", d.Source, "      "}, {"    result:", d.Result, "      "}} {
			if part.title != "" {
				line("%s", part.title)
			}
			if err := indented(text, part.value, part.by); err != nil {
				return err
			}
		}
	}
	return nil
}

// indented writes a value as YAML.
func indented(to *bytes.Buffer, value any, by string) error {
	text, err := yaml.Marshal(value)
	if err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	for row := range bytes.Lines(text) {
		to.WriteString(by + report.Escape(string(bytes.TrimRight(row, "\n"))) + "\n")
	}
	return nil
}
