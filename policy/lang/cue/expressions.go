package cue

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cuelang.org/go/cue/ast"
	"cuelang.org/go/cue/literal"
	"cuelang.org/go/cue/token"

	"github.com/quaymaster/quaymaster/internal/expression"
)

// maxFolds bounds the steps to the texts of regular expressions, which names may multiply.
const maxFolds = 10_000

// expressions finds the regular expressions of a policy, and bounds them each and together: CUE compiles them
// anew in each evaluation, and cannot be interrupted.
type expressions struct {
	declared *cost
	library  []string          // the names of the package regexp
	used     map[ast.Node]bool // parts of calls that were checked
	sum      expression.Sum
	folds    int
	err      error
}

func (c *cost) checkExpressions(file *ast.File) error {
	e := &expressions{declared: c, used: map[ast.Node]bool{}}
	for spec := range file.ImportSpecs() {
		if name, err := strconv.Unquote(spec.Path.Value); err != nil || name != "regexp" {
			continue
		}
		name := "regexp"
		if spec.Name != nil {
			name = spec.Name.Name
		}
		e.library = append(e.library, name)
	}
	ast.Walk(file, e.visit, nil)
	return e.err
}

func (e *expressions) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ImportDecl:
		return false
	case *ast.UnaryExpr:
		if n.Op == token.MAT || n.Op == token.NMAT {
			e.add(n.X)
		}
	case *ast.BinaryExpr:
		if n.Op == token.MAT || n.Op == token.NMAT {
			e.add(n.Y)
		}
	case *ast.CallExpr:
		e.call(n)
	case *ast.SelectorExpr:
		if e.isLibrary(n.X) && !e.used[n] {
			e.refuse(n)
		}
		e.used[n.X] = true
	case *ast.Ident:
		if e.isLibrary(n) && !e.used[n] {
			e.refuse(n)
		}
	}
	return e.err == nil
}

func (e *expressions) isLibrary(n ast.Expr) bool {
	name, is := n.(*ast.Ident)
	return is && slices.Contains(e.library, name.Name)
}

// call checks a call of the package. With an argument less it is a constraint, and the constrained value
// is the first argument, which is the expression.
func (e *expressions) call(n *ast.CallExpr) {
	function, is := n.Fun.(*ast.SelectorExpr)
	if !is || !e.isLibrary(function.X) {
		return
	}
	e.used[function] = true
	name, _, _ := ast.LabelName(function.Sel)
	switch {
	case name == "QuoteMeta":
	case len(n.Args) == 0 || len(n.Args) == 1 && name != "Valid":
		e.refuse(n)
	default:
		e.add(n.Args[0])
	}
}

func (e *expressions) refuse(n ast.Node) {
	if e.err == nil {
		e.err = fmt.Errorf("%s: a regular expression is computed from other than texts of the policy: write it out", n.Pos())
	}
}

func (e *expressions) add(pattern ast.Expr) {
	texts, known := e.texts(pattern, nil)
	if !known || len(texts) == 0 {
		e.refuse(pattern)
	}
	for _, text := range texts {
		if err := e.sum.Add(text); err != nil && e.err == nil {
			e.err = fmt.Errorf("%s: %w", pattern.Pos(), err)
		}
	}
}

// texts returns the texts that a value may be; none for any text. It is not known if it may be other than
// those; through are the names that led to it.
func (e *expressions) texts(value ast.Expr, through []string) (texts []string, known bool) {
	e.folds++
	if e.folds > maxFolds {
		return nil, false
	}
	switch v := value.(type) {
	case *ast.BasicLit:
		if v.Kind != token.STRING {
			return []string{v.Value}, true
		}
		text, err := literal.Unquote(v.Value)
		return []string{text}, err == nil
	case *ast.ParenExpr:
		return e.texts(v.X, through)
	case *ast.UnaryExpr:
		if v.Op == token.MUL { // a default
			return e.texts(v.X, through)
		}
	case *ast.Interpolation:
		return e.interpolated(v, through)
	case *ast.BinaryExpr:
		return e.binary(v, through)
	case *ast.SelectorExpr:
		name, _, err := ast.LabelName(v.Sel)
		return e.named(name, err == nil, through)
	case *ast.Ident:
		return e.named(v.Name, true, through)
	}
	return nil, false
}

func (e *expressions) binary(v *ast.BinaryExpr, through []string) ([]string, bool) {
	left, isLeft := e.texts(v.X, through)
	right, isRight := e.texts(v.Y, through)
	known := isLeft && isRight
	switch v.Op {
	case token.AND:
		return slices.Concat(left, right), known
	case token.OR:
		return slices.Concat(left, right), known && len(left) > 0 && len(right) > 0
	case token.ADD:
		return joined(known, left, right)
	}
	return nil, false
}

// joined is the text of parts that are one text each.
func joined(known bool, parts ...[]string) ([]string, bool) {
	var out strings.Builder
	for _, part := range parts {
		if !known || len(part) != 1 || out.Len()+len(part[0]) > maxPolicy {
			return nil, false
		}
		out.WriteString(part[0])
	}
	return []string{out.String()}, true
}

// named returns the texts of each declaration of a name, wherever it is.
func (e *expressions) named(name string, known bool, through []string) (texts []string, _ bool) {
	paths := e.declared.byName[name]
	if len(paths) == 0 && name == "string" {
		return nil, true
	}
	if !known || len(paths) == 0 || slices.Contains(through, name) {
		return nil, false
	}
	for _, path := range paths {
		var here []string
		for _, value := range e.declared.byPath[path] {
			more, known := e.texts(value, append(slices.Clip(through), name))
			if !known {
				return nil, false
			}
			here = append(here, more...)
		}
		if len(here) == 0 {
			return nil, false
		}
		texts = append(texts, here...)
	}
	return texts, true
}

func (e *expressions) interpolated(v *ast.Interpolation, through []string) ([]string, bool) {
	first, isFirst := v.Elts[0].(*ast.BasicLit)
	last, isLast := v.Elts[len(v.Elts)-1].(*ast.BasicLit)
	if !isFirst || !isLast {
		return nil, false
	}
	quotes, skip, _, err := literal.ParseQuotes(first.Value, last.Value)
	if err != nil {
		return nil, false
	}
	var parts [][]string
	for _, element := range v.Elts {
		fragment, is := element.(*ast.BasicLit)
		if !is || len(parts)%2 == 1 {
			texts, known := e.texts(element, through)
			if !known {
				return nil, false
			}
			parts = append(parts, texts)
			continue
		}
		text, err := quotes.Unquote(fragment.Value[min(skip, len(fragment.Value)):])
		if err != nil {
			return nil, false
		}
		parts, skip = append(parts, []string{text}), 1 // the parenthesis that closes
	}
	return joined(true, parts...)
}
