package quaymaster_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// backReferences is the most references between files against the reading order, in all packages of
// gate and gateway together; only ever lowered (280 before the packages were laid out so).
const backReferences = 18

// references are those from one file to another of the same package.
type references map[[2]string]bool

// referencesOf reads the files of a package: which file names a declaration of which. A method counts
// where no other method, and no field, has its name.
func referencesOf(t *testing.T, files []string) references {
	t.Helper()
	declared, methods := map[string]string{}, map[string]string{} // the file by the name
	fields := map[string]bool{}
	parsed := map[string]*ast.File{}
	fset := token.NewFileSet()
	for _, file := range files {
		f, err := parser.ParseFile(fset, file, nil, 0) // with Unresolved, the names of other files
		if err != nil {
			t.Fatal(err)
		}
		parsed[file] = f
		for _, name := range slices.Collect(maps.Keys(f.Scope.Objects)) {
			declared[name] = file
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if name := n.Name.Name; n.Recv != nil {
					fields[name] = fields[name] || methods[name] != ""
					methods[name] = file
				}
			case *ast.Field:
				for _, name := range n.Names {
					fields[name.Name] = true
				}
			}
			return true
		})
	}
	found := references{}
	add := func(from, to string) {
		if to != "" && from != to {
			found[[2]string{from, to}] = true
		}
	}
	for file, f := range parsed {
		for _, name := range f.Unresolved {
			add(file, declared[name.Name])
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if selector, ok := n.(*ast.SelectorExpr); ok && !fields[selector.Sel.Name] {
				add(file, methods[selector.Sel.Name])
			}
			return true
		})
	}
	return found
}

// against returns the references against an order.
func (r references) against(order []string) (back []string) {
	for reference := range r {
		if slices.Index(order, reference[0]) > slices.Index(order, reference[1]) {
			back = append(back, reference[0]+" -> "+path.Base(reference[1]))
		}
	}
	slices.Sort(back)
	return back
}

// order finds an order in which few references run back: each file before those that it names, as
// far as they do not name it, mended by moving one file at a time.
func (r references) order(files []string) []string {
	var order []string
	seen := map[string]bool{}
	var visit func(string)
	visit = func(file string) {
		if seen[file] {
			return
		}
		seen[file] = true
		for _, other := range files {
			if r[[2]string{file, other}] {
				visit(other)
			}
		}
		order = slices.Insert(order, 0, file)
	}
	for _, file := range files {
		visit(file)
	}
	for best, moved := len(r.against(order)), true; moved && best > 0; {
		moved = false
		for from := range order {
			for to := range order {
				tried := slices.Clone(order)
				file := tried[from]
				tried = slices.Insert(slices.Delete(tried, from, from+1), to, file)
				if n := len(r.against(tried)); n < best {
					best, order, moved = n, tried, true
				}
			}
		}
	}
	return order
}

// TestReadingOrder holds that a package can be read from its flow down to its types: references
// from a file to one before it are few.
func TestReadingOrder(t *testing.T) {
	packages := map[string][]string{}
	for _, file := range load(t).files {
		if strings.HasPrefix(file.path, "gate/") || strings.HasPrefix(file.path, "gateway/") {
			packages[file.pkg()] = append(packages[file.pkg()], filepath.FromSlash(file.path))
		}
	}
	total, arrows := []string{}, 0
	for _, files := range packages {
		r := referencesOf(t, files)
		arrows += len(r)
		total = append(total, r.against(r.order(files))...)
	}
	if arrows < 100 {
		t.Fatalf("only %d references between files were found", arrows)
	}
	slices.Sort(total)
	t.Logf("references between files of gate and gateway: %d, against the reading order %d", arrows, len(total))
	if len(total) != backReferences {
		t.Errorf("%d references against the reading order, want %d:\n\t%s", len(total), backReferences, strings.Join(total, "\n\t"))
	}
}
