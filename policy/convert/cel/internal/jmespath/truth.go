package jmespath

import (
	"fmt"
	"strings"

	jp "github.com/kyverno/go-jmespath"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
)

// truth writes a condition: whether the value of a node counts as true.
func (c *compiler) truth(n jp.ASTNode, on term.Term) (string, term.Rank, error) {
	switch n.NodeType {
	case jp.ASTNotExpression:
		text, rank, err := c.truth(n.Children[0], on)
		return "!" + term.Grouped(text, rank, term.Primary), term.Unary, err
	case jp.ASTAndExpression, jp.ASTOrExpression:
		before := *c.fails
		*c.fails = false
		left, leftRank, err := c.truth(n.Children[0], on)
		if err != nil {
			return "", 0, err
		}
		strict := *c.fails
		*c.fails = before || strict
		right, rightRank, err := c.truth(n.Children[1], on)
		text, rank := term.Logic(term.Term{Text: left, Rank: leftRank}, term.Term{Text: right, Rank: rightRank}, n.NodeType == jp.ASTOrExpression, strict)
		return text, rank, err
	case jp.ASTComparator:
		v, err := c.comparison(n, on)
		if v.Path != nil {
			return term.Conjoined(v.Path.Present, v.Text), term.And, err
		}
		return v.Text, v.Rank, err
	}
	v, err := c.node(n, on)
	if err != nil {
		return "", 0, err
	}
	return truthOf(v)
}

// truthOf writes whether a value counts as true.
func truthOf(v term.Term) (string, term.Rank, error) {
	otherwise, test := "", ""
	switch {
	case v.Instead != nil:
		return "", 0, refuse("|| as a condition")
	case v.Shape.Is(shape.Bool):
		otherwise = "false"
	case v.Shape.Is(shape.Text):
		otherwise, test = "''", " != ''"
	case v.Shape.Is(shape.List):
		otherwise, test = "[]", ".size() > 0"
	case v.Shape.Is(shape.Object):
		otherwise, test = "{}", ".size() > 0"
	case v.Shape.Is(shape.Number):
		there, ok := v.Present()
		if ok && there == "" {
			there = "true"
		}
		if ok {
			return there, term.Relation, nil
		}
	default:
		return "", 0, refuse("a value that may be of several types as a condition")
	}
	text, rank, ok := v.Softly(otherwise)
	if !ok {
		return "", 0, refuse("a value that is no path as a condition")
	}
	if test == "" {
		return text, rank, nil
	}
	return term.Grouped(text, rank, term.Primary) + test, term.Relation, nil
}

// comparison compares two values. A missing one is null, which equals nothing else, and has no order: the
// result is null then, and the path is that of the value that must be present.
func (c *compiler) comparison(n jp.ASTNode, on term.Term) (term.Term, error) {
	left, err := c.node(n.Children[0], on)
	if err != nil {
		return left, err
	}
	right, err := c.node(n.Children[1], on)
	if err != nil {
		return right, err
	}
	sign := operatorOf(n)
	if left.Fixed != nil && right.Fixed == nil {
		left, right, sign = right, left, turned(sign)
	}
	switch {
	case left.ASCII || right.ASCII || left.List != nil && left.List.Each().ASCII || right.List != nil && right.List.Each().ASCII:
		return left, refuse("the comparison of letters that are changed in ASCII alone")
	case left.Instead != nil || right.Instead != nil || left.List != nil && left.List.Element != nil || right.List != nil && right.List.Element != nil:
		return left, refuse("the comparison of a list")
	case sign == "==" || sign == "!=":
		text, rank, err := c.equal(left, right, sign)
		return term.Term{Text: text, Rank: rank, Shape: shape.OfBool()}, err
	case !are(shape.Number, left, right) || !right.Sure():
		return left, refuse("an order of values that may be no numbers")
	}
	out := term.Term{Text: left.In(term.Sum) + " " + sign + " " + right.In(term.Sum), Rank: term.Relation, Shape: shape.OfBool(), Null: !left.Sure()}
	if out.Null {
		there, ok := left.Present()
		if !ok {
			return left, refuse("an order of a value that may be null")
		}
		out.Path = &celtext.Path{Direct: out.Text, Present: there}
	}
	return out, nil
}

// operatorOf is the sign of a comparison: the library does not export its marks, but their names.
func operatorOf(n jp.ASTNode) string {
	switch strings.TrimPrefix(fmt.Sprint(n.Value), "t") {
	case "EQ":
		return "=="
	case "NE":
		return "!="
	case "LT":
		return "<"
	case "LTE":
		return "<="
	case "GT":
		return ">"
	}
	return ">="
}

// turned is the operator for operands in the other order.
func turned(sign string) string {
	return map[string]string{"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}[sign]
}

// equal compares for equality.
func (c *compiler) equal(left, right term.Term, sign string) (string, term.Rank, error) {
	both := func(a, b string) (string, term.Rank, error) { return a + " " + sign + " " + b, term.Relation, nil }
	switch {
	case left.Sure() && right.Sure():
		return both(left.In(term.Sum), right.In(term.Sum))
	case right.Fixed != nil && *right.Fixed == nil:
		there, ok := left.Present()
		if !ok {
			return "", 0, refuse("a comparison with null")
		}
		if sign == "==" {
			return term.Not(there), term.Unary, nil
		}
		return there, term.Primary, nil
	case right.Fixed != nil && c.scope.Untyped && left.Shape.Kinds == shape.Any && left.Path != nil:
		return both(left.Path.Or("null"), right.In(term.Sum)) // values of two types are not equal
	case right.Fixed != nil && right.Shape.Is(left.Shape.Kinds):
		other, ok := term.OtherThan(*right.Fixed)
		text, rank, is := left.Softly(other)
		if !ok || !is {
			return "", 0, refuse("a comparison of a value that may be null")
		}
		return both(term.Grouped(text, rank, term.Sum), right.In(term.Sum))
	case left.Path != nil && right.Path != nil && left.Path.Optional != "" && right.Path.Optional != "" &&
		!left.Shape.May(shape.Null) && !right.Shape.May(shape.Null):
		return both(left.Path.Optional, right.Path.Optional)
	}
	return "", 0, refuse("a comparison of values that may be null")
}
