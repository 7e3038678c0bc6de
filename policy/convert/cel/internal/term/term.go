package term

import (
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
)

// Rank is how tightly the outermost operator of an expression binds.
type Rank byte

// The ranks of CEL's operators.
const (
	Ternary Rank = iota
	Or
	And
	Relation
	Sum
	Product
	Unary
	Primary
)

// Term is an expression of CEL that has the value of an expression of a policy.
type Term struct {
	// Text is the expression. It fails where the source does because a key is missing.
	Text string
	Rank Rank
	// Shape is that of the value, where there is one.
	Shape shape.Shape
	// Path reads the same value, if it is at a path: an optional value where it may be missing.
	Path *celtext.Path
	// List has the levels of a list; nil for all others.
	List *List
	// Missing: the source fails where a key is missing, and so does the text.
	Missing bool
	// Null: the source may be null, where the text fails or is null.
	Null bool
	// Fails: the source fails in other cases, too, and so does the text; a default does not help.
	Fails bool
	// Guards are conditions without which the source fails, where the text may not.
	Guards []string
	// Needs are conditions under which the source has a value, as far as they can be written.
	Needs []string
	// Instead replaces an empty list, where there is an `||` with another value.
	Instead *any
	// Keys is the object of which the value is the list of names.
	Keys *Term
	// Fixed is the value of a literal.
	Fixed *any
	// Duration: the value is a duration of CEL, and its text in the source.
	Duration bool
	// ASCII: the letters of the text are changed to capital or small ones where they are of ASCII.
	ASCII bool
}

// At is the value at a path that is sure to be there.
func At(text string, of shape.Shape) Term {
	return Term{Text: text, Rank: Primary, Shape: of, Path: &celtext.Path{Direct: text}}
}

// Fixed is a value of JSON, as encoding/json decodes it.
func Fixed(v any) Term {
	out := Term{Text: Literal(v), Rank: Primary, Shape: shapeOf(v), Fixed: &v}
	if _, isList := v.([]any); isList {
		out.List = ListOf(out, "item")
	}
	return out
}

func shapeOf(v any) shape.Shape {
	switch v := v.(type) {
	case nil:
		return shape.Shape{Kinds: shape.Null}
	case string:
		return shape.Shape{Kinds: shape.Text, Full: v != ""}
	case bool:
		return shape.Shape{Kinds: shape.Bool, Full: v}
	case float64:
		return shape.Shape{Kinds: shape.Number, Full: true, Whole: v == float64(int64(v))}
	case []any:
		element := shape.Shape{}
		for _, one := range v {
			element.Kinds |= shapeOf(one).Kinds
		}
		return shape.OfList(element)
	}
	return shape.Shape{Kinds: shape.Object}
}

// Is reports whether the value is of one of some types where there is one.
func (t Term) Is(kinds shape.Kinds) bool { return t.Shape.Is(kinds) }

// May reports whether the value may be of one of some types.
func (t Term) May(kinds shape.Kinds) bool { return t.Shape.May(kinds) }

// In returns the text as an operand of an operator with a rank.
func (t Term) In(outer Rank) string { return Grouped(t.Text, t.Rank, outer) }

// Grouped puts an operand into parentheses if it binds less than its operator.
func Grouped(text string, rank, outer Rank) string {
	if rank >= outer {
		return text
	}
	return "(" + text + ")"
}

// Sure reports whether the source has a value, and no failure and no null.
func (t Term) Sure() bool { return !t.Missing && !t.Null }

// Softly is the value with another one where that of the source is missing or null; ok is false if there is no
// such text.
func (t Term) Softly(otherwise string) (text string, rank Rank, ok bool) {
	switch {
	case t.Sure():
		return t.Text, t.Rank, true
	case t.Path != nil && !t.May(shape.Null):
		return t.Path.Or(otherwise), Primary, true
	case t.List != nil && otherwise == "[]":
		text, rank = t.List.Text(true)
		return text, rank, true
	}
	return "", 0, false
}

// Present holds where the source has a value, and not null; empty for always. Ok is false if there is no such text.
func (t Term) Present() (text string, ok bool) {
	switch {
	case t.Sure():
		return "", true
	case t.Path == nil || t.Path.Present == "":
		return "", false
	case t.May(shape.Null):
		return t.Path.Or("null") + " != null", true
	}
	return t.Path.Present, true
}

// Known returns the value once it is known to be there.
func (t Term) Known() Term {
	t.Missing, t.Null = false, false
	if t.Path != nil {
		sure := t.Path.Sure()
		t.Path, t.Text, t.Rank = &sure, sure.Direct, Primary
	}
	return t
}

// Logic writes && and ||. A left side that fails decides in the source, whatever the right side: strict.
func Logic(left, right Term, or, strict bool) (string, Rank) {
	switch {
	case strict && or:
		return left.In(Or) + " ? true : " + right.In(Or), Ternary
	case strict:
		return left.In(Or) + " ? " + right.In(Or) + " : false", Ternary
	case or:
		return left.In(Or) + " || " + right.In(Or), Or
	}
	return left.In(And) + " && " + right.In(And), And
}
