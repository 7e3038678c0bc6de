package jmespath

import (
	"fmt"
	"strings"

	jp "github.com/kyverno/go-jmespath"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// compiler compiles one expression.
type compiler struct {
	scope Scope
	// holes are the values of the variables in it.
	holes []term.Term
	// names are those of elements of lists around a node.
	names []string
	// fails is set where a function fails for arguments that are missing.
	fails *bool
	// guards are conditions without which the source fails, and the text may not.
	guards *[]string
	// needs are conditions under which no argument of a function is missing.
	needs *[]string
}

// refuse is the error for a construct without an equal form.
func refuse(format string, args ...any) error {
	return &source.Unsupported{Found: fmt.Sprintf(format, args...)}
}

// isContext and isRequest report whether a value is all of the context, or the request, which no expression is.
func isContext(t term.Term) bool { return t.Text == "" }

func isRequest(t term.Term) bool { return t.Text == "request" && t.Path == nil }

// node compiles a node that is evaluated on a value.
func (c *compiler) node(n jp.ASTNode, on term.Term) (term.Term, error) {
	switch n.NodeType {
	case jp.ASTField:
		return c.field(n, on)
	case jp.ASTIdentity, jp.ASTCurrentNode:
		if isContext(on) || isRequest(on) {
			return on, refuse("all of the context")
		}
		return on, nil
	case jp.ASTLiteral:
		return c.literal(n.Value)
	case jp.ASTSubexpression:
		left, err := c.node(n.Children[0], on)
		if err != nil {
			return left, err
		}
		return c.node(n.Children[1], left)
	case jp.ASTIndexExpression:
		left, err := c.node(n.Children[0], on)
		if err != nil {
			return left, err
		}
		return c.node(n.Children[1], left)
	case jp.ASTIndex:
		return c.index(n, on)
	case jp.ASTPipe:
		return c.pipe(n, on)
	case jp.ASTOrExpression:
		return c.or(n, on)
	case jp.ASTAndExpression:
		return c.and(n, on)
	case jp.ASTComparator:
		return c.comparison(n, on)
	case jp.ASTNotExpression:
		text, rank, err := c.truth(n, on)
		return term.Term{Text: text, Rank: rank, Shape: shape.OfBool()}, err
	case jp.ASTProjection, jp.ASTFilterProjection:
		return c.projection(n, on)
	case jp.ASTFunctionExpression:
		return c.function(n, on)
	}
	return term.Term{}, refuse("a node of the type %s", n.NodeType.String()[len("AST"):])
}

// field is the member of an object.
func (c *compiler) field(n jp.ASTNode, on term.Term) (term.Term, error) {
	name, _ := n.Value.(string)
	switch {
	case isContext(on) && name == "request":
		return term.Term{Text: "request"}, nil
	case isContext(on):
		is, ok := c.scope.names[name]
		if !ok {
			return term.Term{}, refuse("the variable %s", name)
		}
		if is.Member {
			return c.member(term.At(is.Text, is.Shape), name)
		}
		v := term.At(is.Text, is.Shape)
		v.Missing, v.Null = is.Missing, is.Null
		if !v.Sure() {
			v.Path = nil // no optional value tells that it is missing
		}
		*c.fails, *c.guards = *c.fails || is.Fails, append(*c.guards, is.Guards...)
		if is.Shape.May(shape.List) {
			v.List = c.listOf(v)
		}
		return v, nil
	case isRequest(on):
		v, ok := c.scope.request(name)
		if !ok {
			return v, refuse("request.%s", name)
		}
		return c.asList(v), nil
	}
	return c.member(on, name)
}

// member is the value of a key in an object.
func (c *compiler) member(on term.Term, name string) (term.Term, error) {
	if !on.Shape.May(shape.Object) {
		return term.Term{}, refuse("the member %s of a value that is no object", name)
	}
	of, sure, found := on.Shape.Field(name)
	if !found {
		return term.Term{}, refuse("the field %s, which no kind that the rule matches has", name)
	}
	if on.Path == nil {
		at := celtext.Path{Direct: on.In(term.Primary)}
		on.Path = &at
	}
	at, err := c.at(*on.Path, name)
	if err != nil {
		return on, err
	}
	// A member of a value of another type is null in the source. It fails in the result, which denies then.
	out := term.Term{Rank: term.Primary, Shape: of, Missing: true, Null: on.Null || !on.Shape.Is(shape.Object) && on.Shape.Kinds != shape.Any}
	at.Nil = !sure && of.May(shape.List) && on.Shape.MayBeNil(name)
	if at.Nil {
		at.Present = at.Or("null") + " != null"
	}
	out.Null = out.Null || at.Nil
	if sure && on.Path.Optional == "" && !on.Null {
		at = celtext.Path{Direct: at.Direct}
		out.Missing = on.Missing
	}
	out.Path, out.Text = &at, at.Direct
	return c.asList(out), nil
}

// at is the location of a member, in the name of which there may be variables. The source writes them into the
// expression before it parses that, so that they must not have signs of the language: names have none.
func (c *compiler) at(of celtext.Path, name string) (celtext.Path, error) {
	if !strings.Contains(name, markOpen) {
		return of.At(name), nil
	}
	for _, hole := range c.holes {
		if !hole.Sure() || hole.Fails || !hole.Shape.Plain || !hole.Is(shape.Text) {
			return of, refuse("a key with a variable that may be missing, or have other signs than those of names")
		}
	}
	key, err := c.filled(name)
	return of.Index(key.In(term.Sum)), err
}

// asList gives a value that is a list its levels.
func (c *compiler) asList(v term.Term) term.Term {
	if v.Shape.May(shape.List) {
		v.List = c.listOf(v)
	}
	return v
}

// listOf makes a list of a value, with a name for the elements.
func (c *compiler) listOf(t term.Term) *term.List {
	return term.ListOf(t, celtext.ElementName(t.Text, c.taken))
}

// taken reports whether a name has a meaning already.
func (c *compiler) taken(name string) bool {
	for _, is := range c.scope.names {
		if is.Text == name {
			return true
		}
	}
	for _, one := range c.names {
		if one == name {
			return true
		}
	}
	switch name {
	case "object", "oldObject", "request", "namespaceObject", "variables", "image", "images", "resource", "http", "globalContext", "json", "yaml":
		return true
	}
	return false
}

// index is an element of a list, which is null where there is none.
func (c *compiler) index(n jp.ASTNode, on term.Term) (term.Term, error) {
	at, _ := n.Value.(int)
	if at < 0 || !on.Shape.Is(shape.List) || on.Path == nil {
		return term.Term{}, refuse("the index [%d]", at)
	}
	base := on.Path.Direct
	if on.Path.Optional != "" {
		base = on.Path.Optional
	}
	if on.Shape.Full && at == 0 && on.Sure() {
		return c.asList(term.At(on.Path.Direct+"[0]", on.Shape.Element())), nil
	}
	out := term.Term{Rank: term.Primary, Shape: on.Shape.Element(), Missing: on.Missing, Null: true}
	out.Path = &celtext.Path{Direct: fmt.Sprintf("%s[%d]", on.Path.Direct, at), Optional: fmt.Sprintf("%s[?%d]", base, at)}
	out.Path.Present = out.Path.Optional + ".hasValue()"
	out.Text = out.Path.Direct
	return c.asList(out), nil
}

// pipe evaluates the right side on the left; a missing key is null in it.
func (c *compiler) pipe(n jp.ASTNode, on term.Term) (term.Term, error) {
	left, err := c.node(n.Children[0], on)
	if err != nil {
		return left, err
	}
	left.Null, left.Missing = left.Null || left.Missing, false
	right, err := c.node(n.Children[1], left)
	right.Null, right.Missing = right.Null || right.Missing, false
	return right, err
}

// or is the left side, or the right one where that is empty, false, null or missing.
func (c *compiler) or(n jp.ASTNode, on term.Term) (term.Term, error) {
	before := *c.fails
	*c.fails = false
	left, err := c.node(n.Children[0], on)
	if err != nil {
		return left, err
	}
	strict := *c.fails
	*c.fails = *c.fails || before
	right, err := c.node(n.Children[1], on)
	if err != nil {
		return right, err
	}
	full := left.Shape.Full || left.Shape.Quantity || left.Shape.Is(shape.Number)
	if left.Sure() && full {
		return left, nil
	}
	if !right.Sure() {
		return either(left, right)
	}
	empty := right.Fixed != nil && term.IsEmpty(*right.Fixed)
	switch {
	case are(shape.Bool, left, right) && left.Sure() && right.Fixed == nil:
		out := term.Term{Shape: shape.OfBool()}
		out.Text, out.Rank = term.Logic(left, right, true, strict)
		return out, nil
	case left.Shape.Kinds == shape.Any:
		return guessed(left, right)
	case left.Shape.Kinds != right.Shape.Kinds:
		return instead(left, right)
	case full || empty && !left.Shape.Is(shape.Bool) || right.Text == "false":
		text, rank, ok := left.Softly(right.In(term.Sum))
		if !ok {
			return right, refuse("|| behind a value that is no path")
		}
		out := term.Term{Text: text, Rank: rank, Shape: left.Shape}
		out.Shape.Full = full && right.Shape.Full
		if left.List != nil {
			out.List = left.List.Softened()
		}
		return out, nil
	case left.Shape.Is(shape.Text) && left.Path != nil:
		text, _, _ := left.Softly("''")
		out := term.Term{Text: text + " != '' ? " + left.Path.Direct + " : " + right.In(term.Or), Rank: term.Ternary, Shape: left.Shape}
		out.Shape.Full = right.Shape.Full
		return out, nil
	}
	return right, refuse("|| of two values that are not empty")
}

// and is the left side where that counts as false, else the right one.
func (c *compiler) and(n jp.ASTNode, on term.Term) (term.Term, error) {
	before := *c.fails
	*c.fails = false
	left, err := c.node(n.Children[0], on)
	if err != nil {
		return left, err
	}
	strict := *c.fails || !left.Sure()
	*c.fails = *c.fails || before
	right, err := c.node(n.Children[1], on)
	if err != nil {
		return right, err
	}
	if !are(shape.Bool, left, right) || right.Null {
		return right, refuse("&& of values that may be no booleans")
	}
	out := term.Term{Shape: shape.OfBool(), Missing: right.Missing, Null: !left.Sure()}
	out.Text, out.Rank = term.Logic(left, right, false, strict)
	return out, nil
}

// either is the first of two values at paths that is there; null where neither is.
func either(left, right term.Term) (term.Term, error) {
	full := func(t term.Term) bool { return t.Shape.Full || t.Shape.Quantity || t.Is(shape.Number) }
	if !full(left) || left.Shape.Kinds != right.Shape.Kinds || left.May(shape.Null) || left.Path == nil || right.Path == nil ||
		left.Path.Optional == "" || right.Path.Optional == "" {
		return right, refuse("|| with a value that may be missing, too")
	}
	out := right
	first := left.Path.Optional + ".or(" + right.Path.Optional + ")"
	out.Path = &celtext.Path{Direct: first + ".value()", Optional: first, Present: first + ".hasValue()"}
	out.Text, out.Rank, out.Missing, out.Null, out.List = out.Path.Direct, term.Primary, false, true, nil
	out.Shape.Full, out.Shape.Plain, out.Shape.Quantity = full(right), left.Shape.Plain && right.Shape.Plain, left.Shape.Quantity && right.Shape.Quantity
	return out, nil
}

// guessed is a value of a type that is not known, with an empty default of the type that it is used as. A value of
// another type fails in the result.
func guessed(left, right term.Term) (term.Term, error) {
	if right.Fixed == nil || left.Path == nil {
		return left, refuse("|| of a value of an unknown type")
	}
	switch v := (*right.Fixed).(type) {
	case string:
		if v == "" {
			return term.Term{Text: "string(" + left.Path.Or("''") + ")", Rank: term.Primary, Shape: shape.OfText()}, nil
		}
	case []any:
		if len(v) == 0 {
			out := term.At(left.Path.Or("[]"), shape.OfList(shape.Unknown()))
			out.Path, out.List = nil, term.ListOf(out, left.List.Levels[0].Name)
			return out, nil
		}
	}
	return left, refuse("|| of a value of an unknown type")
}

// instead is a list that a literal of another type replaces where it is empty.
func instead(left, right term.Term) (term.Term, error) {
	if left.List == nil || !left.Shape.Is(shape.List) || right.Fixed == nil {
		return term.Term{}, refuse("|| of values of two types")
	}
	text, rank, ok := left.Softly("[]")
	if !ok {
		return term.Term{}, refuse("|| behind a list that is no path")
	}
	return term.Term{Text: text, Rank: rank, Shape: left.Shape, List: left.List.Softened(), Instead: right.Fixed}, nil
}
