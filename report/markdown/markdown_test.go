package markdown_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/finding"
	"github.com/quaymaster/quaymaster/report/markdown"
	"github.com/quaymaster/quaymaster/workload"
)

// hostile is what would break out of code, a table, an element, a link or a command.
const hostile = "a\n\n# b\r| c | `d` ``` ~~~ <script>x</script> [e](javascript:f) @user https://evil.example ::error::g%0A \x1b[31m\u202e##[add-mask]h"

func run(status finding.Status, s string, times int) finding.Run {
	var of finding.Run
	for i := range times {
		of.Objects = append(of.Objects, finding.Object{
			Title: s, Source: s, Template: s, Result: gate.Deny,
			Position: &workload.Position{File: s, Line: i + 1, Column: 2},
			Images:   []finding.Image{{Place: s, Written: s, Digest: s, Result: gate.Deny, Position: &workload.Position{File: s, Line: i + 1, Column: 2}}},
			Findings: []finding.Finding{{
				Status: status, Image: s, Place: s, Policy: s, Rule: s, Position: &workload.Position{File: s, Line: i + 1, Column: 2},
				Reasons: []policy.Reason{{Code: policy.Code(s), Message: s, Path: s, Expected: s, Found: s, Hint: s}},
			}},
		})
	}
	of.Summary.Denied = times
	return of
}

func written(t testing.TB, write func(io.Writer, finding.Run) error, of finding.Run) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, of); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The parts of a line that are ours: everything but code, which starts and ends with one
// backtick and has none inside.
var spans = regexp.MustCompile("`[^`]*`")

var line = regexp.MustCompile(`^(|## Image verification: [^|<>]*|### [A-Z][a-z ]*|[0-9]+ allowed, [0-9]+ denied, .*\.|> \[!WARNING\]|> ~` +
	`|\| (✅ allow|❌ deny|❓ error|➖ unchecked) \| (~|\*the object itself\*)? \| ~? \| ~?( from ~)? \| ~? \||\|.*---\|| *\| \| Image .*\|` +
	`|- ~? ?[a-z, ]+:( ~| ?\[[a-z-]+\]\(https://github\.com/quaymaster/[^)]*#[a-z-]+\))?( by ~)?|[0-9]+ more rows are left out; ~ has all\.|[A-Z][a-z ]+: [0-9]+ more are left out; ~ has all\.)$`)

// sound returns an error for a line of a summary that is not written here.
func sound(text string) error {
	fenced := false
	for _, each := range strings.Split(text, "\n") {
		switch {
		case each == "  ```text" && !fenced, each == "  ```" && fenced:
			fenced = !fenced
		case fenced && strings.HasPrefix(each, "  ") && !strings.Contains(each, "`"):
		case fenced:
			return fmt.Errorf("it ends the code: %q", each)
		case !line.MatchString(strings.TrimRight(spans.ReplaceAllString(each, "~"), " ")) && !line.MatchString(spans.ReplaceAllString(each, "~")):
			return fmt.Errorf("it is none of ours: %q", each)
		}
		for _, r := range each {
			if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp) {
				return fmt.Errorf("%q acts on a terminal: %q", r, each)
			}
		}
	}
	if fenced {
		return fmt.Errorf("the code never ends")
	}
	return nil
}

func TestHostile(t *testing.T) {
	for _, status := range []finding.Status{finding.Deny, finding.Error, finding.Warn, finding.Note, finding.Skip} {
		if err := sound(written(t, markdown.Write, run(status, hostile, 2))); err != nil {
			t.Errorf("%s: %v", status, err)
		}
	}
	if err := sound("- " + hostile); err == nil {
		t.Error("the test accepts foreign text")
	}
}

var command = regexp.MustCompile(`^::(error|warning|notice) (file=[^:,\r\n]*,line=[0-9]+,col=[0-9]+,)?title=[^:,\r\n]*::[^\r\n]*$`)

// commands returns an error for a line that is no command, or has unescaped text.
func commands(text string) error {
	for _, each := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if !command.MatchString(each) || strings.Contains(strings.NewReplacer("%25", "", "%0D", "", "%0A", "", "%3A", "", "%2C", "").Replace(each), "%") {
			return fmt.Errorf("%q", each)
		}
		for _, r := range each {
			if unicode.IsControl(r) {
				return fmt.Errorf("%q acts on a terminal: %q", r, each)
			}
		}
	}
	return nil
}

func TestCommands(t *testing.T) {
	text := written(t, markdown.Annotations, run(finding.Deny, report.Clean(hostile), 2))
	if err := commands(text); err != nil {
		t.Error(err)
	}
	if lines := strings.Count(text, "\n"); lines != 3 {
		t.Errorf("%d commands, want two and the counts:\n%s", lines, text)
	}
	for reason, broken := range map[string]string{
		"two lines": "::error title=a::b\nc", "a bare percent": "::error title=a::%", "a colon": "::error title=a:b::c", "a comma": "::error file=a,b,line=1,col=1,title=a::c",
	} {
		if commands(broken) == nil {
			t.Errorf("the test lets %s pass", reason)
		}
	}
}

// TestWorstFirst: GitHub shows only the first few of each sort.
func TestWorstFirst(t *testing.T) {
	var of finding.Run
	for _, status := range []finding.Status{finding.Note, finding.Warn, finding.Pass, finding.Deny, finding.Error} {
		of.Objects = append(of.Objects, run(status, string(status), 1).Objects...)
	}
	var names []string
	for each := range strings.Lines(written(t, markdown.Annotations, of)) {
		name, _, _ := strings.Cut(strings.TrimPrefix(each, "::"), " ")
		names = append(names, name)
	}
	if got := strings.Join(names, " "); got != "error error warning notice notice" {
		t.Errorf("%s", got)
	}
}

// TestBounds: omitted rows are counted, and a summary stays below GitHub's limit.
func TestBounds(t *testing.T) {
	const most = 1 << 20 // of a step summary, in bytes
	of := run(finding.Deny, strings.Repeat("日", 400), 3000)
	summary, annotations := written(t, markdown.Write, of), written(t, markdown.Annotations, of)
	if len(summary) > most || !strings.Contains(summary, " more rows are left out") || !strings.Contains(summary, " more are left out") {
		t.Errorf("%d bytes: %s", len(summary), summary[len(summary)-200:])
	}
	if n := strings.Count(annotations, "\n"); n != 51 || !strings.Contains(annotations, "2950 more annotations") {
		t.Errorf("%d commands", n)
	}
}

func FuzzWrite(f *testing.F) {
	f.Add(hostile)
	f.Add("`|\\")
	f.Add("")
	f.Add(" ")
	f.Fuzz(func(t *testing.T, s string) {
		for _, status := range []finding.Status{finding.Deny, finding.Note, finding.Skip} {
			of := run(status, s, 1)
			if err := sound(written(t, markdown.Write, of)); err != nil {
				t.Errorf("%q: %v", s, err)
			}
			if err := commands(written(t, markdown.Annotations, run(status, report.Clean(s), 1))); err != nil {
				t.Errorf("%q: %v", s, err)
			}
		}
	})
}

func ExampleAnnotations() {
	if err := markdown.Annotations(os.Stdout, finding.Of(report.Failed("the trusted root could not be fetched"))); err != nil {
		fmt.Println(err)
	}
	// Output: ::error title=Quaymaster::nothing was decided: the trusted root could not be fetched
}

func ExampleWrite() {
	if err := markdown.Write(os.Stdout, finding.Of(report.Failed("the trusted root could not be fetched"))); err != nil {
		fmt.Println(err)
	}
	// Output:
	// ## Image verification: ❌ nothing was decided
	//
	// > [!WARNING]
	// > `nothing was decided: the trusted root could not be fetched`
}
