package fieldcheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// compare refuses a comparison of values that are of different kinds in every object: it has the
// same result for all of them, and a rule that means to deny one value would admit it. Schemas are
// those of the arguments of a call.
func (c *check) compare(e ast.Expr, schemas []Schema) {
	args := e.AsCall().Args()
	if slices.Contains(schemas, Schema(nowhere{})) {
		c.moot[e.ID()] = true
		return
	}
	switch e.AsCall().FunctionName() {
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		c.pair(e, c.side(args[0], schemas[0]), c.side(args[1], schemas[1]))
	case operators.In:
		one := c.side(args[0], schemas[0])
		if args[1].Kind() == ast.ListKind {
			for _, element := range args[1].AsList().Elements() { // of one type
				c.pair(e, one, c.side(element, nil))
			}
			return
		}
		if of := schemas[1]; of != nil && of.IsMap() {
			c.pair(e, one, value{chainOf(args[1]) + "keys", Text, false})
		} else if of != nil && of.ValueKind() == List {
			c.pair(e, one, c.side(args[1], of.Element()))
		}
	}
}

// value is a side of a comparison.
type value struct {
	name    string
	kind    Kind
	written bool // in the expression itself
}

// side returns the value of an argument, of which the schema may be known.
func (c *check) side(e ast.Expr, schema Schema) value {
	if kind := writtenKind(e); kind != Unknown {
		return value{kind: kind, written: true}
	}
	of := value{name: strings.TrimSuffix(chainOf(e), ".")}
	if schema != nil {
		of.kind = schema.ValueKind()
	}
	return of
}

func (c *check) pair(e ast.Expr, a, b value) {
	if a.written {
		a, b = b, a
	}
	if a.written || a.kind == Unknown || b.kind == Unknown || a.kind == b.kind {
		return
	}
	fix := ""
	if b.written {
		fix = ": compare it with " + article(a.kind)
	}
	c.faults[e.ID()] = fmt.Sprintf("%s is %s, and never equal to %s%s", cmp.Or(a.name, "a value"), article(a.kind), article(b.kind), fix)
}

func article(of Kind) string {
	if of == Object {
		return "an object"
	}
	return "a " + string(of)
}

// writtenKind returns the kind of a literal, and of a conversion.
func writtenKind(e ast.Expr) Kind {
	switch e.Kind() {
	case ast.LiteralKind:
		switch e.AsLiteral().(type) {
		case types.String:
			return Text
		case types.Int, types.Uint, types.Double:
			return Number
		case types.Bool:
			return Boolean
		}
	case ast.ListKind:
		return List
	case ast.MapKind:
		return Object
	case ast.CallKind:
		switch e.AsCall().FunctionName() {
		case "string":
			return Text
		case "int", "uint", "double", "size":
			return Number
		case "bool":
			return Boolean
		}
	}
	return Unknown
}
