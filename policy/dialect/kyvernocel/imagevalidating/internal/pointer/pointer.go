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

// OfList returns the pointers of the values that the list of an expression may hold; none where
// they are unknown. The expression must be valid.
func OfList(expression string) ([]string, error) {
	made, err := parser.NewParser(parser.Macros(), parser.EnableOptionalSyntax(true), parser.MaxRecursionDepth(100))
	if err != nil {
		return nil, err
	}
	tree, problems := made.Parse(common.NewTextSource(expression))
	if len(problems.GetErrors()) > 0 {
		return nil, nil
	}
	paths, ok := pathsOf(tree.Expr(), map[string][]string{})
	if !ok {
		return nil, nil
	}
	return paths, nil
}

// reading returns the JSON pointers that an expression is read for, and whether all are known.
// Bound maps the variables of macros to their paths.
type reading func(e ast.Expr, bound map[string][]string) ([]string, bool)

// pathsOf returns the JSON pointers of the values that an expression's list holds.
func pathsOf(e ast.Expr, bound map[string][]string) ([]string, bool) {
	if paths, ok, isList := passedOn(e, bound, pathsOf, valuesOf); isList {
		return paths, ok
	}
	if e.Kind() == ast.CallKind {
		call := e.AsCall()
		switch {
		case call.IsMemberFunction() && call.FunctionName() == "orValue" && len(call.Args()) == 1:
			return both(call.Target(), call.Args()[0], bound, pathsOf)
		case call.IsMemberFunction() && call.FunctionName() == "value" && len(call.Args()) == 0:
			return pathsOf(call.Target(), bound)
		case call.IsMemberFunction() && call.FunctionName() == "flatten" && len(call.Args()) == 0:
			return flattened(call.Target(), bound)
		case call.IsMemberFunction() && call.FunctionName() == "optMap" && len(call.Args()) == 2:
			return optional(call, bound, pathsOf)
		}
	}
	lists, ok := valuesOf(e, bound)
	if !ok {
		return nil, false
	}
	var all []string
	for _, list := range lists {
		all = append(all, list+"/*")
	}
	return all, true
}

// passedOn reads literal lists, and the functions that pass on the elements of lists: whole is
// the reading of a list, each that of one element. It reports whether the expression has such a
// form.
func passedOn(e ast.Expr, bound map[string][]string, whole, each reading) (paths []string, ok, isList bool) {
	switch e.Kind() {
	case ast.ListKind:
		for _, element := range e.AsList().Elements() {
			more, known := each(element, bound)
			if !known {
				return nil, false, true
			}
			paths = append(paths, more...)
		}
		return paths, true, true
	case ast.CallKind:
		call := e.AsCall()
		switch {
		case call.FunctionName() == operators.Add:
			paths, ok = both(call.Args()[0], call.Args()[1], bound, whole)
		case call.FunctionName() == operators.Conditional:
			paths, ok = both(call.Args()[1], call.Args()[2], bound, whole)
		case call.IsMemberFunction() && isReordering(call.FunctionName()):
			paths, ok = whole(call.Target(), bound)
		case call.IsMemberFunction() && call.FunctionName() == operators.Map && len(call.Args()) >= 2:
			paths, ok = mapped(call, bound, each)
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
func flattened(of ast.Expr, bound map[string][]string) ([]string, bool) {
	elements, plain := pathsOf(of, bound)
	for _, path := range slices.Clone(elements) {
		elements = append(elements, path+"/*")
	}
	inner, listed := listsOf(of, bound)
	for _, path := range inner {
		if !slices.Contains(elements, path) {
			elements = append(elements, path)
		}
	}
	return elements, plain || listed
}

// listsOf returns the elements of the lists that an expression writes into a list.
func listsOf(e ast.Expr, bound map[string][]string) ([]string, bool) {
	paths, ok, _ := passedOn(e, bound, listsOf, pathsOf)
	return paths, ok
}

// mapped reads list.map(x, value) and list.map(x, condition, value).
func mapped(call ast.CallExpr, bound map[string][]string, of reading) ([]string, bool) {
	elements, ok := pathsOf(call.Target(), bound)
	if !ok {
		return nil, false
	}
	return of(call.Args()[len(call.Args())-1], with(bound, call.Args()[0].AsIdent(), elements))
}

// optional reads value.optMap(x, result).
func optional(call ast.CallExpr, bound map[string][]string, of reading) ([]string, bool) {
	values, ok := valuesOf(call.Target(), bound)
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
func valuesOf(e ast.Expr, bound map[string][]string) ([]string, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		if paths, ok := bound[e.AsIdent()]; ok {
			return slices.Clone(paths), true // callers append
		}
		return []string{""}, e.AsIdent() == kyvernocel.ObjectName || e.AsIdent() == kyvernocel.OldObjectName
	case ast.SelectKind:
		return below(e.AsSelect().Operand(), e.AsSelect().FieldName(), bound)
	case ast.CallKind:
		call := e.AsCall()
		switch name := call.FunctionName(); {
		case name == operators.OptSelect || name == operators.Index || name == operators.OptIndex:
			if field, ok := textOf(call.Args()[1]); ok {
				return below(call.Args()[0], field, bound)
			}
			return pathsOf(call.Args()[0], bound) // one of the elements, or of the members
		case name == operators.Conditional:
			return both(call.Args()[1], call.Args()[2], bound, valuesOf)
		case call.IsMemberFunction() && name == "orValue" && len(call.Args()) == 1:
			values, ok := valuesOf(call.Target(), bound)
			other, certain := valuesOf(call.Args()[0], bound)
			return append(values, other...), ok && (certain || isLiteral(call.Args()[0]))
		case call.IsMemberFunction() && name == "value" && len(call.Args()) == 0:
			return valuesOf(call.Target(), bound)
		case call.IsMemberFunction() && (name == "first" || name == "last") && len(call.Args()) == 0:
			return pathsOf(call.Target(), bound)
		case call.IsMemberFunction() && name == "optMap" && len(call.Args()) == 2:
			return optional(call, bound, valuesOf)
		}
	}
	return nil, false
}

func below(of ast.Expr, field string, bound map[string][]string) ([]string, bool) {
	parents, ok := valuesOf(of, bound)
	if !ok {
		return nil, false
	}
	var all []string
	for _, p := range parents {
		all = append(all, p+"/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(field))
	}
	return all, true
}

func both(a, b ast.Expr, bound map[string][]string, of reading) ([]string, bool) {
	first, ok := of(a, bound)
	if !ok {
		return nil, false
	}
	second, ok := of(b, bound)
	if !ok {
		return nil, false
	}
	for _, p := range second {
		if !slices.Contains(first, p) {
			first = append(first, p)
		}
	}
	return first, true
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
