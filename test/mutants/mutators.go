package mutants

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"strings"

	"github.com/gtramontina/ooze/viruses"
	"github.com/gtramontina/ooze/viruses/comparison"
	"github.com/gtramontina/ooze/viruses/comparisoninvert"
)

// mutators returns the changes for a file's checks. They are made anew for each file, as some
// record the nodes that they have seen; every node must come after its parent.
func mutators() []viruses.Virus {
	return []viruses.Virus{
		comparison.New(), comparisoninvert.New(),
		never{clauses: map[*ast.CaseClause]bool{}},
		inverted{clauses: map[*ast.CaseClause]bool{}},
		operand{}, answer{returns: map[*ast.ReturnStmt][]change{}},
	}
}

// never takes a check away: what an if, or a case of a switch without a value, does is
// never done. The condition is still evaluated, so that everything remains in use.
type never struct{ clauses map[*ast.CaseClause]bool }

// Incubate implements viruses.Virus.
func (n never) Incubate(node ast.Node) []*viruses.Infection {
	var found []*viruses.Infection
	for _, condition := range conditions(node, n.clauses) {
		found = append(found, replace("never", condition, and(*condition, "false")))
	}
	return found
}

// inverted negates a condition that is no comparison: ok, !ok, f(x).
type inverted struct{ clauses map[*ast.CaseClause]bool }

// Incubate implements viruses.Virus.
func (i inverted) Incubate(node ast.Node) []*viruses.Infection {
	var found []*viruses.Infection
	places := conditions(node, i.clauses)
	if logic, ok := logical(node); ok {
		places = append(places, &logic.X, &logic.Y)
	}
	for _, place := range places {
		if single(*place) {
			found = append(found, replace("inverted", place, not(*place)))
		}
	}
	return found
}

// operand takes one side of an && or || away. It does as ooze's comparisonreplace, and
// keeps the side's variables in use, without which most of those mutants do not compile.
type operand struct{}

// Incubate implements viruses.Virus.
func (operand) Incubate(node ast.Node) []*viruses.Infection {
	logic, ok := logical(node)
	if !ok {
		return nil
	}
	var found []*viruses.Infection
	for _, side := range []*ast.Expr{&logic.X, &logic.Y} {
		without := or(*side, "true")
		if logic.Op == token.LOR {
			without = and(*side, "false")
		}
		found = append(found, replace("without", side, without))
	}
	return found
}

// answer changes what a function answers: the opposite of a bool, and no error where its
// last statement returns what a call answers.
type answer struct{ returns map[*ast.ReturnStmt][]change }

// change is an expression that a return statement answers with, and another one for it.
type change struct {
	name  string
	place *ast.Expr
	other ast.Expr
}

// Incubate implements viruses.Virus.
func (a answer) Incubate(node ast.Node) []*viruses.Infection {
	switch node := node.(type) {
	case *ast.FuncDecl:
		a.learn(node.Type, node.Body)
	case *ast.FuncLit:
		a.learn(node.Type, node.Body)
	case *ast.ReturnStmt:
		var found []*viruses.Infection
		for _, c := range a.returns[node] {
			found = append(found, replace(c.name, c.place, c.other))
		}
		return found
	}
	return nil
}

// learn notes what may be changed in the return statements of a function.
func (a answer) learn(kind *ast.FuncType, body *ast.BlockStmt) {
	results := types(kind.Results)
	if body == nil || len(results) == 0 {
		return
	}
	ast.Inspect(body, func(node ast.Node) bool {
		if _, ok := node.(*ast.FuncLit); ok {
			return false
		}
		given, ok := node.(*ast.ReturnStmt)
		if !ok || len(given.Results) != len(results) {
			return true
		}
		last := body.List[len(body.List)-1] == ast.Stmt(given)
		for i := range given.Results {
			if c, ok := changed(results[i], &given.Results[i], last); ok {
				a.returns[given] = append(a.returns[given], c)
			}
		}
		return true
	})
}

// changed returns what else a function might answer in place of an expression of a type.
func changed(kind ast.Expr, place *ast.Expr, last bool) (change, bool) {
	if name, ok := kind.(*ast.Ident); ok && name.Name == "bool" && single(*place) {
		return change{name: "inverted", place: place, other: not(*place)}, true
	}
	_, pointer := kind.(*ast.StarExpr)
	name, ok := kind.(*ast.Ident)
	_, call := (*place).(*ast.CallExpr)
	if !last || !call || !pointer && (!ok || name.Name != "error") {
		return change{}, false
	}
	return change{name: "no answer", place: place, other: &ast.CallExpr{Fun: &ast.FuncLit{
		Type: &ast.FuncType{Params: &ast.FieldList{}, Results: &ast.FieldList{List: []*ast.Field{{Type: kind}}}},
		Body: &ast.BlockStmt{List: []ast.Stmt{
			&ast.AssignStmt{Lhs: []ast.Expr{ast.NewIdent("_")}, Tok: token.ASSIGN, Rhs: []ast.Expr{*place}},
			&ast.ReturnStmt{Results: []ast.Expr{ast.NewIdent("nil")}},
		}},
	}}}, true
}

// types returns the type of each result.
func types(results *ast.FieldList) []ast.Expr {
	var list []ast.Expr
	if results == nil {
		return nil
	}
	for _, field := range results.List {
		for range max(1, len(field.Names)) {
			list = append(list, field.Type)
		}
	}
	return list
}

// conditions returns where a node has conditions: those of an if and of a case. Cases are
// conditions only in a switch without a value, which is why clauses keeps theirs.
func conditions(node ast.Node, clauses map[*ast.CaseClause]bool) []*ast.Expr {
	switch node := node.(type) {
	case *ast.IfStmt:
		return []*ast.Expr{&node.Cond}
	case *ast.SwitchStmt:
		for _, clause := range node.Body.List {
			if clause, ok := clause.(*ast.CaseClause); ok && node.Tag == nil {
				clauses[clause] = true
			}
		}
	case *ast.CaseClause:
		var list []*ast.Expr
		for i := range node.List {
			if clauses[node] {
				list = append(list, &node.List[i])
			}
		}
		return list
	}
	return nil
}

// logical returns the node if it is an && or ||.
func logical(node ast.Node) (*ast.BinaryExpr, bool) {
	logic, ok := node.(*ast.BinaryExpr)
	return logic, ok && (logic.Op == token.LAND || logic.Op == token.LOR)
}

// single reports whether an expression is neither a comparison nor made of several.
func single(x ast.Expr) bool {
	_, several := ast.Unparen(x).(*ast.BinaryExpr)
	return !several
}

func and(x ast.Expr, with string) ast.Expr {
	return &ast.BinaryExpr{X: &ast.ParenExpr{X: x}, Op: token.LAND, Y: ast.NewIdent(with)}
}

func or(x ast.Expr, with string) ast.Expr {
	return &ast.ParenExpr{X: &ast.BinaryExpr{X: &ast.ParenExpr{X: x}, Op: token.LOR, Y: ast.NewIdent(with)}}
}

func not(x ast.Expr) ast.Expr {
	return &ast.UnaryExpr{Op: token.NOT, X: &ast.ParenExpr{X: x}}
}

// replace puts one expression in another's place for a while.
func replace(name string, place *ast.Expr, other ast.Expr) *viruses.Infection {
	was := *place
	return viruses.NewInfection(name+" "+text(was), func() { *place = other }, func() { *place = was })
}

// describe names the change of an infection. Ours have it in their names; ooze's are seen in
// the comparison itself.
func describe(infection *viruses.Infection, node ast.Node) string {
	compared, ok := node.(*ast.BinaryExpr)
	if !ok || !strings.HasPrefix(infection.String(), "Comparison") {
		return infection.String()
	}
	was, is := text(compared), ""
	infection.Infect(func() { is = compared.Op.String() })
	return fmt.Sprintf("%s by %s", was, is)
}

// text returns an expression on one line.
func text(x ast.Expr) string {
	var written bytes.Buffer
	if err := printer.Fprint(&written, token.NewFileSet(), x); err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(written.String()), " ")
}
