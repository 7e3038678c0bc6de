package mutants

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"path/filepath"
	"strings"
)

// Mutant is one change of one check.
type Mutant struct {
	// Name identifies it: the file, the function, the line and its change. It
	// has no number of a line, so that it stays the same when others are written above.
	Name string

	number int // which of its package; the environment names it
	body   string
	unit   *unit
}

// unit is a function that is mutated: one that is declared, or a literal outside of those.
type unit struct {
	number  int
	name    string
	kind    *ast.FuncType
	body    *ast.BlockStmt
	mutants []*Mutant
	// labels: a body with labels cannot stand in one function with its copies.
	labels bool
}

// source is a file and its mutants.
type source struct {
	path  string
	text  []byte
	set   *token.FileSet
	units []*unit
}

// parse reads a file and finds its mutants. Numbers continue from the
// counter's.
func parse(path string, text []byte, count *counter) (*source, error) {
	s := &source{path: path, text: text, set: token.NewFileSet()}
	file, err := parser.ParseFile(s.set, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declared := range file.Decls {
		ast.Inspect(declared, func(node ast.Node) bool {
			switch node := node.(type) {
			case *ast.FuncDecl:
				if node.Body != nil {
					s.add(node, &unit{name: called(node), kind: node.Type, body: node.Body}, count)
				}
				return false
			case *ast.FuncLit:
				s.add(node, &unit{name: "func", kind: node.Type, body: node.Body}, count)
				return false
			}
			return true
		})
	}
	return s, nil
}

// counter numbers the units and mutants of a package, and distinguishes mutants of one name.
type counter struct {
	units, mutants int
	names          map[string]int
}

// add finds the mutants of a function.
func (s *source) add(function ast.Node, u *unit, count *counter) {
	list := mutators()
	ast.Inspect(function, func(node ast.Node) bool {
		if node == nil {
			return true
		}
		if _, ok := node.(*ast.LabeledStmt); ok {
			u.labels = true
		}
		for _, mutator := range list {
			for _, infection := range mutator.Incubate(node) {
				m := &Mutant{unit: u, Name: fmt.Sprintf("%s %s | %s | %s", filepath.Base(s.path), u.name, s.line(node), describe(infection, node))}
				infection.Infect(func() { m.body = s.print(u.body) })
				count.names[m.Name]++
				if n := count.names[m.Name]; n > 1 {
					m.Name += fmt.Sprintf(" (%d)", n)
				}
				count.mutants++
				m.number = count.mutants
				u.mutants = append(u.mutants, m)
			}
		}
		return true
	})
	if len(u.mutants) > 0 {
		count.units++
		u.number = count.units
		s.units = append(s.units, u)
	}
}

// line returns the text of the line that a node is changed in.
func (s *source) line(node ast.Node) string {
	at := node.Pos()
	if compared, ok := node.(*ast.BinaryExpr); ok {
		at = compared.OpPos
	}
	lines := bytes.Split(s.text, []byte("\n"))
	return strings.Join(strings.Fields(string(lines[s.set.Position(at).Line-1])), " ")
}

// print writes a body as it is now.
func (s *source) print(body *ast.BlockStmt) string {
	var written bytes.Buffer
	if err := printer.Fprint(&written, s.set, body); err != nil {
		return err.Error() // does not compile, which is seen
	}
	return written.String()
}

// called returns the name of a function, with its receiver.
func called(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	return "(" + text(function.Recv.List[0].Type) + ")." + function.Name.Name
}

// The names of the code that is compiled into a mutated package.
const (
	alive   = "mutantAlive"
	entered = "mutantEntered"
)

// lines are the position of a mutant's body in the compiled file.
type lines struct {
	first, last int
	mutant      *Mutant
}

// compose writes the file with the bodies of all of its mutants, but for those that are
// dead from the start: before a function does anything it asks which mutant is alive.
func (s *source) compose(unviable map[*Mutant]bool) ([]byte, []lines) {
	var written bytes.Buffer
	var places []lines
	from := 0
	for _, u := range s.units {
		opened := s.set.Position(u.body.Lbrace).Offset + 1
		written.Write(s.text[from:opened])
		from = opened
		fmt.Fprintf(&written, "\nif %s != 0 {\nif %s < 0 { %s(%d) }\nswitch %s {\n", alive, alive, entered, u.number, alive)
		for _, m := range u.mutants {
			if unviable[m] {
				continue
			}
			first := 1 + bytes.Count(written.Bytes(), []byte("\n"))
			fmt.Fprintf(&written, "case %d:\n%s\n", m.number, u.call(m.body))
			places = append(places, lines{first, bytes.Count(written.Bytes(), []byte("\n")), m})
		}
		written.WriteString("}\n}\n")
	}
	written.Write(s.text[from:])
	return written.Bytes(), places
}

// call returns the statements that do what a body does, and return.
func (u *unit) call(body string) string {
	results := types(u.kind.Results)
	switch {
	case !u.labels && len(results) > 0:
		return body
	case !u.labels:
		return body + "\nreturn"
	case len(results) == 0:
		return "func() " + body + "()\nreturn"
	}
	signature := &ast.FuncType{Params: &ast.FieldList{}, Results: u.kind.Results}
	return "return " + text(signature) + " " + body + "()"
}

// selector lets a mutated package read which mutant is alive, and write which
// functions were entered.
const selector = `package %s

import (
	"os"
	"strconv"
	"sync"
)

var mutantAlive = func() int {
	number, _ := strconv.Atoi(os.Getenv("MUTANT"))
	return number
}()

var mutantSeen sync.Map

func mutantEntered(function int) {
	if _, seen := mutantSeen.LoadOrStore(function, true); seen {
		return
	}
	file, err := os.OpenFile(os.Getenv("MUTANT_ENTERED"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := file.WriteString(strconv.Itoa(function) + "\n"); err != nil {
		panic(err)
	}
}
`
