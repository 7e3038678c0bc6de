package fieldcheck

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// maxInferred bounds how many variables are followed in turn.
const maxInferred = 20

type boundTypes map[string]Schema

func (b boundTypes) with(name string, of Schema) boundTypes {
	more := maps.Clone(b)
	if more == nil {
		more = boundTypes{}
	}
	more[name] = of
	return more
}

func (c *check) infer(e ast.Expr, bound boundTypes) Schema {
	switch e.Kind() {
	case ast.IdentKind:
		if of, is := bound[e.AsIdent()]; is {
			return of
		}
		if slices.Contains(c.Objects, e.AsIdent()) {
			return c.schema
		}
	case ast.SelectKind:
		member := c.field(e, e.AsSelect().Operand(), e.AsSelect().FieldName(), bound)
		if e.AsSelect().IsTestOnly() { // has() is true or false, not the field
			return nil
		}
		return member
	case ast.CallKind:
		return c.call(e, bound)
	case ast.ComprehensionKind:
		return c.comprehension(e.AsComprehension(), bound)
	default:
		for _, part := range Parts(e) {
			c.infer(part, bound)
		}
	}
	return nil
}

// field infers a member. Kubernetes escapes names that are CEL's own, as in __namespace__.
func (c *check) field(e, operand ast.Expr, name string, bound boundTypes) Schema {
	if operand.Kind() == ast.IdentKind && operand.AsIdent() == c.Variables {
		if _, is := bound[c.Variables]; !is {
			return c.variable(name)
		}
	}
	return c.member(e, operand, c.infer(operand, bound), name)
}

// member returns the member of an operand that is inferred.
func (c *check) member(e, operand ast.Expr, of Schema, name string) Schema {
	if of == nil || strings.HasPrefix(name, "__") {
		return nil
	}
	member, ok := of.Field(name)
	if !ok {
		c.faults[e.ID()] = fmt.Sprintf("undefined field %q: no kind that the policy matches has it", chainOf(operand)+name)
		return nowhere{}
	}
	return member
}

// nowhere is the schema of a field that is not defined: nor is any of its own, so that kinds
// which lack different steps of one path lack its end.
type nowhere struct{}

// Field returns that there is none.
func (nowhere) Field(string) (Schema, bool) { return nil, false }

// Element returns the same.
func (nowhere) Element() Schema { return nowhere{} }

// IsMap returns false.
func (nowhere) IsMap() bool { return false }

// ValueKind returns that it is not known.
func (nowhere) ValueKind() Kind { return Unknown }

// optional is the schema of an optional value, as of its fields: two that have no value are equal,
// whatever their kinds.
type optional struct{ of Schema }

// optionalOf returns the schema of an optional value.
func optionalOf(of Schema) Schema {
	switch of.(type) {
	case nil, nowhere, optional:
		return of
	}
	return optional{of}
}

// valueOf returns the schema of an optional's value.
func valueOf(of Schema) Schema {
	if is, ok := of.(optional); ok {
		return is.of
	}
	return of
}

// Field returns the optional field.
func (o optional) Field(name string) (Schema, bool) {
	member, ok := o.of.Field(name)
	return optionalOf(member), ok
}

// Element returns the optional element.
func (o optional) Element() Schema { return optionalOf(o.of.Element()) }

// IsMap returns false: an optional has no keys.
func (o optional) IsMap() bool { return false }

// ValueKind returns that it is not known.
func (o optional) ValueKind() Kind { return Unknown }

// variable infers a variable of the document, once. Its own fields are checked where it is
// declared.
func (c *check) variable(name string) Schema {
	if of, is := c.variables[name]; is {
		return of
	}
	root, declared := c.Variable(name)
	if !declared || c.depth >= maxInferred {
		return nil
	}
	own := &check{Expression: c.Expression, schema: c.schema, faults: map[int64]string{}, moot: map[int64]bool{}, variables: c.variables, depth: c.depth + 1}
	c.variables[name] = own.infer(root, nil)
	return c.variables[name]
}

func (c *check) call(e ast.Expr, bound boundTypes) Schema {
	call := e.AsCall()
	args := call.Args()
	switch call.FunctionName() {
	case operators.Index:
		return c.index(e, bound)
	case operators.OptIndex, operators.OptSelect:
		return optionalOf(c.index(e, bound))
	case operators.Conditional:
		c.infer(args[0], bound)
		return same(c.infer(args[1], bound), c.infer(args[2], bound))
	}
	var types []Schema
	for _, part := range Parts(e) {
		types = append(types, c.infer(part, bound))
	}
	if !call.IsMemberFunction() {
		c.compare(e, types)
		if call.FunctionName() != operators.In {
			return nil
		}
		if text, ok := literal(args[0]); ok { // of an object, unlike a list or map, it asks for a field
			c.member(e, args[1], types[1], text)
		}
		return nil
	}
	switch name := call.FunctionName(); {
	case name == "value" && len(args) == 0:
		return valueOf(types[0])
	case name == "orValue" && len(args) == 1:
		of := valueOf(types[0])
		if hasNoFields(args[0]) {
			return of
		}
		return same(of, types[1])
	case name == "or" && len(args) == 1:
		return same(types[0], types[1])
	}
	return nil
}

// index infers an element, or the field of a literal name.
func (c *check) index(e ast.Expr, bound boundTypes) Schema {
	args := e.AsCall().Args()
	if text, ok := literal(args[1]); ok {
		return c.field(e, args[0], text, bound)
	}
	c.infer(args[1], bound)
	if of := c.infer(args[0], bound); of != nil {
		return of.Element()
	}
	return nil
}

// hasNoFields reports whether an expression is an empty list or map, of which nothing is read
// that is not read of the other value of a choice.
func hasNoFields(e ast.Expr) bool {
	switch e.Kind() {
	case ast.ListKind:
		return e.AsList().Size() == 0
	case ast.MapKind:
		return e.AsMap().Size() == 0
	}
	return false
}

func same(a, b Schema) Schema {
	if a == b {
		return a
	}
	return nil
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	text, ok := e.AsLiteral().(types.String)
	return string(text), ok
}

// comprehension infers the result of an expanded all(), exists(), map(), filter(), optMap() or
// cel.bind(): the elements of the range, and the range itself of a filter.
func (c *check) comprehension(of ast.ComprehensionExpr, bound boundTypes) Schema {
	over := c.infer(of.IterRange(), bound)
	start := c.infer(of.AccuInit(), bound)
	loops := of.IterRange().Kind() != ast.ListKind || len(of.IterRange().AsList().Elements()) > 0
	inner, after := bound.with(of.AccuVar(), nil), bound.with(of.AccuVar(), start)
	if loops {
		after = inner
	}
	var element Schema
	if over != nil {
		element = over.Element()
	}
	switch {
	case of.HasIterVar2():
		inner = inner.with(of.IterVar(), nil).with(of.IterVar2(), element)
	case over != nil && over.IsMap():
		inner = inner.with(of.IterVar(), nil)
	default:
		inner = inner.with(of.IterVar(), element)
	}
	c.infer(of.LoopCondition(), inner)
	c.infer(of.LoopStep(), inner)
	result := c.infer(of.Result(), after)
	if loops && !of.HasIterVar2() && over != nil && !over.IsMap() && filters(of) {
		return over
	}
	return result
}

// filters reports whether the elements of the range are kept as they are.
func filters(of ast.ComprehensionExpr) bool {
	step := of.LoopStep()
	if step.Kind() != ast.CallKind || step.AsCall().FunctionName() != operators.Conditional {
		return false
	}
	adds := step.AsCall().Args()[1]
	if adds.Kind() != ast.CallKind || adds.AsCall().FunctionName() != operators.Add {
		return false
	}
	list := adds.AsCall().Args()[1]
	if list.Kind() != ast.ListKind || len(list.AsList().Elements()) != 1 {
		return false
	}
	kept := list.AsList().Elements()[0]
	return kept.Kind() == ast.IdentKind && kept.AsIdent() == of.IterVar()
}

// chainOf writes a chain of fields for messages, with a point at its end.
func chainOf(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent() + "."
	case ast.SelectKind:
		return chainOf(e.AsSelect().Operand()) + e.AsSelect().FieldName() + "."
	case ast.CallKind:
		if args := e.AsCall().Args(); e.AsCall().FunctionName() == operators.OptSelect {
			text, _ := literal(args[1])
			return chainOf(args[0]) + text + "."
		} else if len(args) == 2 && e.AsCall().FunctionName() == operators.Index {
			return strings.TrimSuffix(chainOf(args[0]), ".") + "[]."
		}
	}
	return ""
}
