// Package pointer derives the JSON pointers (RFC 6901, with * for each element) of the values that
// a CEL expression returns, by analysis: paths from the object, map() over a list, optional fields,
// filters, and joined lists.
package pointer

import (
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/parser"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
)

// Bounds of the analysis of an expression, above which its values are unknown. Each step of an
// expression may double the work, each place that a step returns is one more step, and each place is
// looked for in every object.
const (
	maxSteps  = 100_000
	maxPlaces = 256
	maxLength = 1 << 10 // of one place, in bytes
)

// analysis counts the steps.
type analysis struct{ steps int }

// isOver counts a step, and reports whether there were too many.
func (a *analysis) isOver() bool {
	a.steps++
	return a.steps > maxSteps
}

// fits reports whether there are not too many places. If there are, the analysis is over: no part of
// the expression counts as known.
func (a *analysis) fits(paths []string) bool {
	isLong := func(path string) bool { return len(path) > maxLength }
	a.steps += len(paths)
	if len(paths) > maxPlaces || slices.ContainsFunc(paths, isLong) {
		a.steps = max(a.steps, maxSteps)
	}
	return a.steps < maxSteps
}

// OfList returns the pointers of the values that the list of an expression may hold, at most 256; none
// where they are unknown, also as the expression is too large. The expression must be valid.
func OfList(expression string) ([]string, error) {
	made, err := parser.NewParser(parser.Macros(), parser.EnableOptionalSyntax(true), parser.MaxRecursionDepth(100))
	if err != nil {
		return nil, err
	}
	tree, problems := made.Parse(common.NewTextSource(expression))
	if len(problems.GetErrors()) > 0 {
		return nil, nil
	}
	a := &analysis{}
	paths, ok := a.pathsOf(tree.Expr(), map[string][]string{})
	if !ok || a.isOver() {
		return nil, nil
	}
	return paths, nil
}

// reading returns the JSON pointers that an expression is read for, and whether all are known.
// Bound maps the variables of macros to their paths.
type reading func(e ast.Expr, bound map[string][]string) ([]string, bool)

// pathsOf returns the JSON pointers of the values that an expression's list holds.
func (a *analysis) pathsOf(e ast.Expr, bound map[string][]string) ([]string, bool) {
	if a.isOver() {
		return nil, false
	}
	if paths, ok, isList := a.passedOn(e, bound, a.pathsOf, a.valuesOf); isList {
		return paths, ok
	}
	if e.Kind() == ast.CallKind {
		call := e.AsCall()
		switch {
		case call.IsMemberFunction() && call.FunctionName() == "orValue" && len(call.Args()) == 1:
			return a.both(call.Target(), call.Args()[0], bound, a.pathsOf)
		case call.IsMemberFunction() && call.FunctionName() == "value" && len(call.Args()) == 0:
			return a.pathsOf(call.Target(), bound)
		case call.IsMemberFunction() && call.FunctionName() == "flatten" && len(call.Args()) == 0:
			return a.flattened(call.Target(), bound)
		case call.IsMemberFunction() && call.FunctionName() == "optMap" && len(call.Args()) == 2:
			return a.optional(call, bound, a.pathsOf)
		}
	}
	lists, ok := a.valuesOf(e, bound)
	if !ok {
		return nil, false
	}
	var all []string
	for _, list := range lists {
		all = append(all, list+"/*")
	}
	return all, a.fits(all)
}

// passedOn reads literal lists, and the functions that pass on the elements of lists: whole is
// the reading of a list, each that of one element. It reports whether the expression has such a
// form.
func (a *analysis) passedOn(e ast.Expr, bound map[string][]string, whole, each reading) (paths []string, ok, isList bool) {
	switch e.Kind() {
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			more, known := each(element, bound)
			if !known {
				return nil, false, true
			}
			paths = union(paths, more)
			if !a.fits(paths) {
				return nil, false, true
			}
		}
		return paths, true, true
	case ast.CallKind:
		call := e.AsCall()
		switch {
		case call.FunctionName() == operators.Add:
			paths, ok = a.both(call.Args()[0], call.Args()[1], bound, whole)
		case call.FunctionName() == operators.Conditional:
			paths, ok = a.both(call.Args()[1], call.Args()[2], bound, whole)
		case call.IsMemberFunction() && isReordering(call.FunctionName()):
			paths, ok = whole(call.Target(), bound)
		case call.IsMemberFunction() && call.FunctionName() == operators.Map && len(call.Args()) >= 2:
			paths, ok = a.mapped(call, bound, each)
		default:
			return nil, false, false
		}
		return paths, ok, true
	}
	return nil, false, false
}

// isReordering reports whether a function of a list returns some of its elements, in whatever
// order.
func isReordering(function string) bool {
	return slices.Contains([]string{operators.Filter, "distinct", "reverse", "slice", "sort", "sortBy"}, function)
}

// flattened returns the elements of a list's lists, and those that are no lists.
func (a *analysis) flattened(of ast.Expr, bound map[string][]string) ([]string, bool) {
	elements, plain := a.pathsOf(of, bound)
	var lists []string
	for _, path := range elements {
		lists = append(lists, path+"/*")
	}
	inner, listed := a.listsOf(of, bound)
	elements = union(union(elements, lists), inner)
	return elements, a.fits(elements) && (plain || listed)
}

// listsOf returns the elements of the lists that an expression writes into a list.
func (a *analysis) listsOf(e ast.Expr, bound map[string][]string) ([]string, bool) {
	if a.isOver() {
		return nil, false
	}
	paths, ok, _ := a.passedOn(e, bound, a.listsOf, a.pathsOf)
	return paths, ok
}

// mapped reads list.map(x, value) and list.map(x, condition, value).
func (a *analysis) mapped(call ast.CallExpr, bound map[string][]string, of reading) ([]string, bool) {
	elements, ok := a.pathsOf(call.Target(), bound)
	if !ok {
		return nil, false
	}
	return of(call.Args()[len(call.Args())-1], with(bound, call.Args()[0].AsIdent(), elements))
}

// optional reads value.optMap(x, result).
func (a *analysis) optional(call ast.CallExpr, bound map[string][]string, of reading) ([]string, bool) {
	values, ok := a.valuesOf(call.Target(), bound)
	if !ok {
		return nil, false
	}
	return of(call.Args()[1], with(bound, call.Args()[0].AsIdent(), values))
}

func with(bound map[string][]string, name string, paths []string) map[string][]string {
	more := maps.Clone(bound)
	more[name] = paths
	return more
}

// valuesOf returns the JSON pointers of the values that an expression may be.
func (a *analysis) valuesOf(e ast.Expr, bound map[string][]string) ([]string, bool) {
	if a.isOver() {
		return nil, false
	}
	switch e.Kind() {
	case ast.IdentKind:
		if paths, ok := bound[e.AsIdent()]; ok {
			return paths, true
		}
		return []string{""}, e.AsIdent() == kyvernocel.ObjectName || e.AsIdent() == kyvernocel.OldObjectName
	case ast.SelectKind:
		return a.below(e.AsSelect().Operand(), e.AsSelect().FieldName(), bound)
	case ast.CallKind:
		call := e.AsCall()
		switch name := call.FunctionName(); {
		case name == operators.OptSelect || name == operators.Index || name == operators.OptIndex:
			if field, ok := textOf(call.Args()[1]); ok {
				return a.below(call.Args()[0], field, bound)
			}
			return a.pathsOf(call.Args()[0], bound) // one of the elements, or of the members
		case name == operators.Conditional:
			return a.both(call.Args()[1], call.Args()[2], bound, a.valuesOf)
		case call.IsMemberFunction() && name == "orValue" && len(call.Args()) == 1:
			values, ok := a.valuesOf(call.Target(), bound)
			other, certain := a.valuesOf(call.Args()[0], bound)
			values = union(values, other)
			return values, a.fits(values) && ok && (certain || isLiteral(call.Args()[0]))
		case call.IsMemberFunction() && name == "value" && len(call.Args()) == 0:
			return a.valuesOf(call.Target(), bound)
		case call.IsMemberFunction() && (name == "first" || name == "last") && len(call.Args()) == 0:
			return a.pathsOf(call.Target(), bound)
		case call.IsMemberFunction() && name == "optMap" && len(call.Args()) == 2:
			return a.optional(call, bound, a.valuesOf)
		}
	}
	return nil, false
}

func (a *analysis) below(of ast.Expr, field string, bound map[string][]string) ([]string, bool) {
	parents, ok := a.valuesOf(of, bound)
	if !ok {
		return nil, false
	}
	var all []string
	for _, p := range parents {
		all = append(all, p+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(field))
	}
	return all, a.fits(all)
}

func (a *analysis) both(one, other ast.Expr, bound map[string][]string, of reading) ([]string, bool) {
	first, ok := of(one, bound)
	if !ok {
		return nil, false
	}
	second, ok := of(other, bound)
	if !ok {
		return nil, false
	}
	all := union(first, second)
	return all, a.fits(all)
}

// union returns the pointers of both lists, each once.
func union(first, second []string) []string {
	all := slices.Clip(first)
	for _, p := range second {
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// isLiteral reports whether an expression is a text or an empty list or map, which has no
// location in the object.
func isLiteral(e ast.Expr) bool {
	return e.Kind() == ast.LiteralKind || e.Kind() == ast.ListKind && e.AsList().Size() == 0 || e.Kind() == ast.MapKind && e.AsMap().Size() == 0
}

func textOf(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().Value().(string)
	return text, ok
}
