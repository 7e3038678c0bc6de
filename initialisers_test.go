package quaymaster_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestInitialisers finds if and switch statements with an initialiser that changes a variable of
// an outer scope: such a change is easily missed by a reader of the condition. An initialiser
// declares with :=, or assigns to err or ok.
func TestInitialisers(t *testing.T) {
	fset := token.NewFileSet()
	files := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && entry.Name() == "node_modules" {
			return fs.SkipDir
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		files++
		parsed, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, at := range impureInitialisers(parsed) {
			t.Errorf("%s: the initialiser changes a variable from outside: move it before the statement", fset.Position(at))
		}
		return nil
	})
	if err != nil || files < 1000 {
		t.Fatalf("%d files: %v", files, err)
	}
}

// TestImpureInitialisers holds the rule itself.
func TestImpureInitialisers(t *testing.T) {
	for _, test := range []struct {
		statement string
		impure    bool
		reason    string
	}{
		{"if n := f(); n > 0 {}", false, "declares"},
		{"if err = g(); err != nil {}", false, "err"},
		{"if _, ok = m[k]; ok {}", false, "ok and blank"},
		{"if x = f(); x > 0 {}", true, "a variable from outside"},
		{"if x, err = h(); err != nil {}", true, "a variable from outside next to err"},
		{"if x++; x > 0 {}", true, "increments"},
		{"if x += 2; x > 0 {}", true, "adds"},
		{"if err += s; err == s {}", true, "an operator reads what came before, also of err"},
		{"if delete(m, k); len(m) > 0 {}", true, "a call as a statement"},
		{"if p.x = f(); true {}", true, "a field"},
		{"if m[k] = f(); true {}", true, "an element"},
		{"if false {} else if x = f(); x > 0 {}", true, "behind else"},
		{"switch x = f(); x {}", true, "switch"},
		{"switch x = f(); y := z.(type) {}", true, "type switch"},
		{"switch n := f(); {}", false, "switch that declares"},
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "", "package p; func _() { "+test.statement+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		if found := len(impureInitialisers(parsed)) == 1; found != test.impure {
			t.Errorf("%s (%s): impure %v", test.statement, test.reason, found)
		}
	}
}

func impureInitialisers(file *ast.File) []token.Pos {
	var found []token.Pos
	ast.Inspect(file, func(n ast.Node) bool {
		var init ast.Stmt
		switch statement := n.(type) {
		case *ast.IfStmt:
			init = statement.Init
		case *ast.SwitchStmt:
			init = statement.Init
		case *ast.TypeSwitchStmt:
			init = statement.Init
		}
		if init != nil && !isPureInitialiser(init) {
			found = append(found, init.Pos())
		}
		return true
	})
	return found
}

func isPureInitialiser(init ast.Stmt) bool {
	assignment, ok := init.(*ast.AssignStmt)
	if !ok {
		return false
	}
	if assignment.Tok == token.DEFINE {
		return true
	}
	for _, left := range assignment.Lhs {
		if name, ok := left.(*ast.Ident); !ok || name.Name != "err" && name.Name != "ok" && name.Name != "_" {
			return false
		}
	}
	return assignment.Tok == token.ASSIGN
}
