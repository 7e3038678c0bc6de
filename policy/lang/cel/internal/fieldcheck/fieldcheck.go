// Package fieldcheck infers the types of the values that an expression reads of objects, and finds
// fields that no object has, and comparisons with the same result for every object.
package fieldcheck

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"github.com/google/cel-go/common/ast"
)

// Schema is the type of a JSON value, as far as it is known. A nil Schema matches any value.
// Implementations are comparable.
type Schema interface {
	// Field returns the type of a member; false where an object has none of the name.
	Field(name string) (Schema, bool)
	// Element returns the type of a list's elements or a map's values.
	Element() Schema
	// IsMap reports whether it is a map.
	IsMap() bool
	// ValueKind returns the kind of the value.
	ValueKind() Kind
}

// Kind is the kind of a JSON value, of which values of another kind are never equal.
type Kind string

// The kinds of values. An Unknown one may be of any kind, as a quantity is a number or a text.
const (
	Unknown Kind = ""
	Text    Kind = "text"
	Number  Kind = "number"
	Boolean Kind = "boolean"
	List    Kind = "list"
	Object  Kind = "object"
)

// Expression is a checked expression with the variables that it may read.
type Expression struct {
	Root ast.Expr
	// Objects are the variables that hold an object.
	Objects []string
	// Variables is the name before those of the document, and Variable returns the expression of
	// one of them.
	Variables string
	Variable  func(name string) (ast.Expr, bool)
}

// Check returns an error for an expression that reads a field which none of the schemas has, or
// compares values that are never equal by all of them; nil for none. A field that one schema has is
// defined, since an expression may look which kind it has before it reads on; and whatever cannot be
// inferred is of anything.
func Check(of Expression, schemas []Schema) error {
	faults := map[int64]string{}
	var checks []*check
	for _, schema := range schemas {
		c := &check{Expression: of, schema: schema, faults: map[int64]string{}, moot: map[int64]bool{}, variables: map[string]Schema{}}
		c.infer(of.Root, nil)
		maps.Copy(faults, c.faults)
		checks = append(checks, c)
	}
	maps.DeleteFunc(faults, func(id int64, _ string) bool {
		return slices.ContainsFunc(checks, func(c *check) bool { return c.faults[id] == "" && !c.moot[id] })
	})
	if len(faults) == 0 {
		return nil
	}
	return errors.New(slices.MinFunc(slices.Sorted(maps.Values(faults)), func(a, b string) int { return cmp.Compare(len(a), len(b)) }))
}

// check infers types through one expression, by one schema.
type check struct {
	Expression
	schema Schema
	faults map[int64]string // by the part of the expression
	moot   map[int64]bool   // comparisons of fields that are not defined, which are faults of their own
	// variables are those of the document that are inferred.
	variables map[string]Schema
	depth     int
}

// Parts returns the parts of an expression.
func Parts(e ast.Expr) (parts []ast.Expr) {
	switch e.Kind() {
	case ast.SelectKind:
		return []ast.Expr{e.AsSelect().Operand()}
	case ast.CallKind:
		parts = e.AsCall().Args()
		if e.AsCall().IsMemberFunction() {
			parts = append([]ast.Expr{e.AsCall().Target()}, parts...)
		}
	case ast.ListKind:
		return e.AsList().Elements()
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			parts = append(parts, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			parts = append(parts, field.AsStructField().Value())
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		return []ast.Expr{c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()}
	}
	return parts
}
