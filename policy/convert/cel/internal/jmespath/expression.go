package jmespath

import (
	"errors"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/template"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// Type is what a value of CEL is known to be.
type Type byte

// The types of values.
const (
	Unknown Type = iota
	String
	Number
	Bool
	List
	Map
	Null
)

// Expression is an expression of CEL.
type Expression struct {
	// Term has the text: it fails where the source does, because a key is missing.
	term.Term
	// Type is that of the value, where there is one.
	Type Type
	// Optional: the value of the source may be null, where the text fails.
	Optional bool
}

func expressionOf(t term.Term) (Expression, error) {
	if isContext(t) || isRequest(t) {
		return Expression{}, refuse("all of the context")
	}
	e := Expression{Term: t, Optional: t.Null}
	for kind, is := range map[shape.Kinds]Type{
		shape.Text: String, shape.Number: Number, shape.Bool: Bool, shape.List: List, shape.Object: Map, shape.Null: Null,
	} {
		if t.Shape.Kinds == kind {
			e.Type = is
		}
	}
	return e, nil
}

// Compile compiles an expression as it stands between {{ and }}; there may be others in it. An error is a
// *source.Unsupported without a path.
func Compile(text string, scope Scope) (Expression, error) {
	v, err := scope.compile(text, term.Term{})
	if err != nil {
		return Expression{}, within(text, err)
	}
	return expressionOf(v)
}

// CompileOn compiles an expression that is evaluated on a value; the variables in it are of the scope.
func CompileOn(text string, scope Scope, on Expression) (Expression, error) {
	t := on.Term
	if t.Path == nil {
		t.Path = &celtext.Path{Direct: t.In(term.Primary)}
	}
	v, err := scope.compile(text, t)
	if err != nil {
		return Expression{}, within(text, err)
	}
	return expressionOf(v)
}

// Or is the expression with another one where its value is null or missing, and not where it is empty.
func (e Expression) Or(fallback Expression) (Expression, error) {
	if e.Sure() {
		return e, nil
	}
	text, rank, ok := e.Softly(fallback.In(term.Sum))
	if !ok || !fallback.Sure() || e.List != nil && e.List.Element != nil {
		return e, refuse("a default of a value that is no path")
	}
	out := term.Term{Text: text, Rank: rank, Shape: shape.Union(e.Shape, fallback.Shape), Fails: e.Fails || fallback.Fails}
	return expressionOf(out)
}

// Template compiles a text with variables in it to an expression of a text.
func Template(text string, scope Scope) (expression Expression, err error) {
	parts, ok := template.Split(text)
	if !ok {
		return Expression{}, within(text, refuse("a variable that is not closed"))
	}
	var pieces []term.Term
	for _, p := range parts {
		v := term.Fixed(p.Text)
		if p.Expression {
			v, err = scope.compile(p.Text, term.Term{})
			if err != nil {
				return Expression{}, within(p.Text, err)
			}
		}
		pieces = append(pieces, v)
	}
	v, err := concatenated(pieces)
	if err != nil {
		return Expression{}, within(text, err)
	}
	return expressionOf(v)
}

// Value compiles a value of a policy, as encoding/json decodes it, with variables in its texts: a text that is one
// variable has the value of that.
func Value(v any, scope Scope) (Expression, error) {
	text, isText := v.(string)
	if isText {
		if whole, ok := template.Whole(text); ok {
			return Compile(whole, scope)
		}
		return Template(text, scope)
	}
	if list, isList := v.([]any); isList && template.Has(v) {
		return listValue(list, scope)
	}
	if template.Has(v) {
		return Expression{}, refuse("variables in a list or an object")
	}
	return expressionOf(term.Fixed(v))
}

// listValue is a list with variables in its texts.
func listValue(items []any, scope Scope) (Expression, error) {
	var texts []string
	var element shape.Shape
	out := term.Term{Rank: term.Primary}
	for i, item := range items {
		one, err := Value(item, scope)
		if err != nil {
			return one, err
		}
		if i == 0 {
			element = one.Shape
		} else if one.Shape.Kinds != element.Kinds {
			return one, refuse("a list of values of several types")
		}
		out.Missing, out.Null, out.Fails = out.Missing || one.Missing, out.Null || one.Null, out.Fails || one.Fails
		texts = append(texts, one.Text)
	}
	element.Full, element.Plain = false, false
	out.Text, out.Shape = "["+strings.Join(texts, ", ")+"]", shape.OfList(element)
	out.List = term.ListOf(out, "item")
	out.List.Levels[0].Name = celtext.ElementName("items", (&compiler{scope: scope}).taken)
	return expressionOf(out)
}

// within adds the expression to an error about a construct in it.
func within(text string, err error) error {
	if found, ok := errors.AsType[*source.Unsupported](err); ok && !strings.Contains(found.Found, "{{") {
		return &source.Unsupported{Path: found.Path, Found: found.Found + " in {{ " + strings.TrimSpace(text) + " }}"}
	}
	return err
}
