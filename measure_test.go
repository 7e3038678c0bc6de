package quaymaster_test

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// source is the measured part of the repository: Go that ships, without tests, generated
// files, test data, examples and the suites, which are modules of their own.
type source struct {
	fset  *token.FileSet
	files []sourceFile
}

type sourceFile struct {
	path  string // slash-separated, relative to the repository
	lines int
	ast   *ast.File
}

func (f sourceFile) pkg() string { return filepath.ToSlash(filepath.Dir(f.path)) }

// load parses the measured files.
func load(t *testing.T) *source {
	return parse(t, func(path string) bool { return !strings.HasSuffix(path, "_test.go") }, isUnmeasured)
}

// loadTests parses the tests and the suites. Those of the root quote the words that they look for.
func loadTests(t *testing.T) *source {
	return parse(t, func(path string) bool {
		return strings.Contains(path, "/") && (strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "test/"))
	}, isGenerated)
}

// parse parses the Go files of some paths, outside of folders to skip.
func parse(t *testing.T, wanted, skipped func(path string) bool) *source {
	t.Helper()
	s := &source{fset: token.NewFileSet()}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		slashed := filepath.ToSlash(path)
		if entry.IsDir() {
			if skipped(slashed) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(slashed, ".go") || !wanted(slashed) {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		parsed, err := parser.ParseFile(s.fset, slashed, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(parsed) {
			s.files = append(s.files, sourceFile{path: slashed, lines: bytes.Count(text, []byte("\n")), ast: parsed})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.files) < 500 {
		t.Fatalf("only %d files were found", len(s.files))
	}
	return s
}

func isUnmeasured(folder string) bool {
	return slices.Contains([]string{"test", "examples", "deploy/image"}, folder) || isGenerated(folder)
}

// isGenerated reports whether a folder holds no source: what is built, fetched or recorded.
func isGenerated(folder string) bool {
	base := filepath.Base(folder)
	return slices.Contains([]string{"bin", "dist"}, folder) || base == "testdata" || base == "node_modules" || base != "." && strings.HasPrefix(base, ".")
}

// sizes are the values that budgets limit, each by the name of the measured part.
type sizes struct {
	packages, files, functions, parameters, methods, fields map[string]int
}

func (s *source) sizes() sizes {
	m := sizes{map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}}
	for _, file := range s.files {
		m.packages[file.pkg()] += file.lines
		m.files[file.path] = file.lines
		for _, declaration := range file.ast.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				name := file.pkg() + "." + functionName(d)
				m.functions[name] = s.fset.Position(d.End()).Line - s.fset.Position(d.Pos()).Line + 1
				m.parameters[name] = d.Type.Params.NumFields()
				if receiver := receiverName(d); receiver != "" {
					m.methods[file.pkg()+"."+receiver]++
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok {
						if structure, ok := t.Type.(*ast.StructType); ok {
							m.fields[file.pkg()+"."+t.Name.Name] = structure.Fields.NumFields()
						}
					}
				}
			}
		}
	}
	return m
}

func functionName(d *ast.FuncDecl) string {
	if receiver := receiverName(d); receiver != "" {
		return receiver + "." + d.Name.Name
	}
	return d.Name.Name
}

// receiverName is the receiver's type without a star and type parameters; empty for a function.
func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	expression := d.Recv.List[0].Type
	for {
		switch e := expression.(type) {
		case *ast.StarExpr:
			expression = e.X
		case *ast.IndexExpr:
			expression = e.X
		case *ast.IndexListExpr:
			expression = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// over lists what exceeds a limit, the largest first.
func over(measured map[string]int, limit int) []string {
	var names []string
	for name, n := range measured {
		if n > limit {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(measured[b]-measured[a], cmp.Compare(a, b)) })
	return names
}

// TestMetrics prints the measures that the budgets and goals are about; make metrics shows them.
func TestMetrics(t *testing.T) {
	s := load(t)
	m := s.sizes()
	total, commands := 0, 0
	for name, n := range m.packages {
		total += n
		if name == "cmd" || strings.HasPrefix(name, "cmd/") {
			commands += n
		}
	}
	t.Logf("%-60s %7d", "lines of Go without tests", total)
	t.Logf("%-60s %7d", "lines of them in cmd", commands)
	t.Logf("%-60s %7d", "packages", len(m.packages))
	for _, row := range []struct {
		name     string
		measured map[string]int
		limit    int
	}{
		{"packages over 1,500 lines", m.packages, 1500},
		{"packages over 3,500 lines", m.packages, 3500},
		{"files over 400 lines", m.files, 400},
		{"functions over 60 lines", m.functions, 60},
		{"functions of more than 5 parameters", m.parameters, 5},
		{"types of more than 25 methods", m.methods, 25},
		{"structs of more than 15 fields", m.fields, 15},
	} {
		names := over(row.measured, row.limit)
		t.Logf("%-60s %7d", row.name, len(names))
		for _, name := range names[:min(len(names), 40)] {
			t.Logf("    %7d %s", row.measured[name], name)
		}
	}
	for _, part := range []struct {
		name string
		text prose
	}{{"comments", s.comments()}, {"docs", docs(t, s)}} {
		t.Logf("%-60s %7d", part.name+", lines", part.text.lines)
		for _, f := range frequencies {
			n := len(f.pattern.FindAllString(part.text.text, -1))
			t.Logf("    %-56s %7.1f per 1,000 lines (%d)", f.name, per1000(n, part.text.lines), n)
		}
	}
}

// budget is a limit on a measured size, and its reasoned exceptions.
type budget struct {
	name       string
	measured   func(sizes) map[string]int
	limit      int
	exceptions map[string]exception
}

// exception lets one package, file, function or type be larger. It never grows: a size above most
// fails the test.
type exception struct {
	most   int
	reason string
}

// TestBudgets holds the budgets of the layout. An exception that is not needed any more fails, so
// that the list shrinks with the code.
func TestBudgets(t *testing.T) {
	m := load(t).sizes()
	for _, b := range budgets {
		measured := b.measured(m)
		for _, name := range over(measured, b.limit) {
			e, ok := b.exceptions[name]
			switch {
			case !ok:
				t.Errorf("%s: %s has %d, want at most %d", b.name, name, measured[name], b.limit)
			case measured[name] > e.most:
				t.Errorf("%s: %s has %d, want at most %d, its exception", b.name, name, measured[name], e.most)
			}
		}
		for name, e := range b.exceptions {
			switch n, ok := measured[name]; {
			case !ok:
				t.Errorf("%s: %s is an exception and not in the tree", b.name, name)
			case n <= b.limit:
				t.Errorf("%s: %s has %d and needs no exception", b.name, name, n)
			case e.reason == "":
				t.Errorf("%s: the exception of %s has no reason", b.name, name)
			}
		}
	}
}
