package quaymaster_test

import (
	"cmp"
	"encoding/xml"
	"flag"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of packages in ARCHITECTURE.md")

// TestArchitecture keeps the table of packages in ARCHITECTURE.md: the layers of layers_test.go
// and the first sentence of each package comment.
//
//	go test -run TestArchitecture . -update
func TestArchitecture(t *testing.T) {
	const page, begin, end = "ARCHITECTURE.md", "<!-- packages -->\n", "<!-- end of packages -->\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no lines %q and %q", page, begin, end)
	}
	wanted := before + begin + packageTable(t) + end + after
	if *update && wanted != string(text) {
		if err := os.WriteFile(page, []byte(wanted), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if wanted != string(text) {
		t.Errorf("%s differs from the layers or the package comments: run go test -run TestArchitecture . -update", page)
	}
}

// TestDrawing compares docs/architecture.svg with the packages: each text of the class "package" is
// a list of folders, a type of the last one in parentheses.
func TestDrawing(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.svg")
	if err != nil {
		t.Fatal(err)
	}
	var drawing struct {
		Texts []struct {
			Class string `xml:"class,attr"`
			Text  string `xml:",chardata"`
		} `xml:"text"`
	}
	if err := xml.Unmarshal(text, &drawing); err != nil {
		t.Fatal(err)
	}
	drawn := 0
	for _, one := range drawing.Texts {
		if one.Class != "package" {
			continue
		}
		names, _, _ := strings.Cut(one.Text, " (")
		for _, name := range strings.Split(names, ", ") {
			drawn++
			if _, err := os.Stat(name); err != nil {
				t.Errorf("docs/architecture.svg: %q: %v", one.Text, err)
			}
		}
	}
	if drawn < 15 {
		t.Errorf("docs/architecture.svg names %d packages, want 15 at least", drawn)
	}
}

func packageTable(t *testing.T) string {
	t.Helper()
	names := slices.SortedFunc(maps.Keys(layers), func(a, b string) int {
		return cmp.Or(cmp.Compare(layers[a], layers[b]), cmp.Compare(a, b))
	})
	var table strings.Builder
	table.WriteString("| layer | package | responsibility |\n|---|---|---|\n")
	for _, name := range names {
		synopsis, ok := synopsisOf(t, name)
		if !ok {
			continue // a folder of tests
		}
		if synopsis == "" {
			t.Errorf("%s has no package comment", name)
		}
		fmt.Fprintf(&table, "| %d | `%s` | %s |\n", layers[name], name, strings.ReplaceAll(synopsis, "|", "\\|"))
	}
	return table.String()
}

// synopsisOf returns the first sentence of a package comment without "Package name" and full stop.
// It is false for a folder that has only tests.
func synopsisOf(t *testing.T, folder string) (synopsis string, ok bool) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var comment *ast.CommentGroup
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), folder+"/"+entry.Name(), nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ok = true
		if file.Doc != nil {
			comment = file.Doc
		}
	}
	if comment == nil {
		return "", ok
	}
	synopsis = new(doc.Package).Synopsis(comment.Text())
	synopsis = strings.TrimPrefix(strings.TrimPrefix(synopsis, "Package "), "Command ")
	_, synopsis, _ = strings.Cut(synopsis, " ") // the name
	return strings.TrimRight(synopsis, ".:"), true
}
