package report_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/verify"
)

const (
	recordDoc = "../docs/record.md"
	codesDoc  = "../docs/reason-codes.md"
)

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sections splits a document at its headings of a level.
func sections(document, heading string) map[string]string {
	out := map[string]string{}
	for _, part := range strings.Split("\n"+document, "\n"+heading+" ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		out[title] = body
	}
	return out
}

func TestRecordDocNamesEveryField(t *testing.T) {
	documented := sections(read(t, recordDoc), "##")
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\| [^|]+ \\|$")
	for title, of := range map[string]any{
		"VerdictList": report.List{}, "Summary": report.Summary{}, "Record": report.Record{}, "Object": report.Object{},
		"Image": report.Image{}, "Mirror": report.Mirror{}, "Attempt": report.Attempt{}, "Decision": report.Decision{}, "Policy": report.Policy{}, "Rule": report.Rule{},
		"Reason": policy.Reason{}, "Proof": report.Proof{}, "Signer": verify.Signer{}, "LogEntry": verify.LogEntry{},
		"Found": report.Found{}, "Cost": report.Cost{},
	} {
		body, found := "", false
		for heading, text := range documented {
			if name, _, _ := strings.Cut(heading, ":"); name == title {
				body, found = text, true
			}
		}
		if !found {
			t.Errorf("%s has no section %s", recordDoc, title)
			continue
		}
		var got []string
		for _, match := range row.FindAllStringSubmatch(body, -1) {
			got = append(got, match[1])
		}
		if want := fields(reflect.TypeOf(of)); !slices.Equal(got, want) {
			t.Errorf("section %s lists the fields\n%q, the record has\n%q", title, got, want)
		}
	}
}

// fields returns the names of a type's fields in JSON, in their order.
func fields(of reflect.Type) []string {
	var names []string
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "-" && of.Field(i).IsExported() {
			names = append(names, name)
		}
	}
	return names
}

func TestRecordDocExample(t *testing.T) {
	outcomes := scenario{name: "web", manifest: `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      containers:
      - {name: web, image: "registry.example/acme/web:1.4"}
      - {name: proxy, image: "registry.example/shop/unsigned:2"}
`}.outcomes(t)
	want := written(t, func(w io.Writer) error { return report.JSON(w, outcomes) })
	document := read(t, recordDoc)
	before, rest, ok := strings.Cut(document, "```json\n")
	got, after, closed := strings.Cut(rest, "```\n")
	if !ok || !closed {
		t.Fatalf("%s has no example", recordDoc)
	}
	if *update {
		if err := os.WriteFile(recordDoc, []byte(before+"```json\n"+want+"```\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("the example in %s differs from the program's output: run go test ./report -update\ngot:\n%s\nwant:\n%s", recordDoc, got, want)
	}
}

func TestReasonCodesAreDocumented(t *testing.T) {
	documented := sections(read(t, codesDoc), "###")
	known := map[string]bool{}
	for _, dir := range []string{"../policy", "../verify"} {
		found := codes(t, dir)
		if len(found) < 10 {
			t.Fatalf("only %d codes found in %s: the test reads them wrongly", len(found), dir)
		}
		for name, value := range found {
			if known[value] {
				t.Errorf("%s: the code %s has two meanings", name, value)
			}
			known[value] = true
			body, ok := documented["`"+value+"`"]
			if !ok {
				t.Errorf("%s (%s) has no section in %s", value, name, codesDoc)
				continue
			}
			for _, part := range []string{"**Means.** ", "**Cause.** ", "**Do.** "} {
				if _, text, found := strings.Cut(body, part); !found || len(text) < 10 {
					t.Errorf("%s: the section of %s lacks %s", codesDoc, value, part)
				}
			}
		}
	}
	for _, title := range slices.Sorted(maps.Keys(documented)) {
		if !known[strings.Trim(title, "`")] {
			t.Errorf("%s documents %s, which is no code", codesDoc, title)
		}
	}
}

// codes returns the constants of type Code that a package declares.
func codes(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
				return true
			}
			for i, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok {
					text, err := strconv.Unquote(literal.Value)
					if err != nil {
						t.Fatal(err)
					}
					found[file+": "+spec.Names[i].Name] = text
				}
			}
			return true
		})
	}
	return found
}

// agreeing are the codes of an admitted image, which need no advice.
var agreeing = []policy.Code{policy.Verified, policy.SkippedByPolicy, policy.NotConcerned, policy.DigestPinned, policy.Excepted, policy.Unchanged, policy.Mirrored, policy.OverrideAllowed}

func TestEveryCodeAgainstAnImageHasAHint(t *testing.T) {
	for _, dir := range []string{"../policy", "../verify"} {
		for name, value := range codes(t, dir) {
			reason := policy.Reason{Code: policy.Code(value), Message: "for the test"}
			record := report.NewRecord(outcomeWith(reason))
			if hint := record.Reasons[0].Hint; (hint == "") != slices.Contains(agreeing, reason.Code) {
				t.Errorf("%s (%s): the hint is %q", value, name, hint)
			}
			reason.Hint = "its own"
			if hint := report.NewRecord(outcomeWith(reason)).Reasons[0].Hint; hint != reason.Hint {
				t.Errorf("%s: the hint %q replaces the reason's own", value, hint)
			}
		}
	}
}
