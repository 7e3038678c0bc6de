package jmespath

import (
	jp "github.com/kyverno/go-jmespath"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
)

// projection is a list of which each element is evaluated: list[], list[*] and list[?condition].
func (c *compiler) projection(n jp.ASTNode, on term.Term) (term.Term, error) {
	left, flattens := n.Children[0], false
	if left.NodeType == jp.ASTFlatten {
		left, flattens = left.Children[0], true
	}
	base, err := c.listIn(left, on, flattens)
	if err != nil {
		return term.Term{}, err
	}
	out := term.Term{List: base.List.Clone(), Null: base.Null || base.Missing, Needs: needsOf(base)}
	l := out.List
	if n.NodeType == jp.ASTFilterProjection && len(l.Levels) > 1 || l.Element != nil && !flattens {
		return term.Term{}, refuse("a list of elements that are selected and put together before")
	}
	if flattens {
		if err := c.flatten(l); err != nil {
			return term.Term{}, err
		}
	}
	inner := *c
	for _, at := range l.Levels {
		inner.names = append(inner.names[:len(inner.names):len(inner.names)], at.Name)
	}
	if n.NodeType == jp.ASTFilterProjection {
		last := &l.Levels[len(l.Levels)-1]
		filter, _, err := inner.truth(n.Children[2], l.Last())
		if err != nil {
			return term.Term{}, err
		}
		last.Filter = term.Conjoined(last.Filter, filter)
	}
	each := l.Each()
	made, err := inner.node(n.Children[1], each)
	if err != nil {
		return term.Term{}, err
	}
	if made.Text != each.Text {
		if _, ok := made.Present(); !ok {
			return term.Term{}, refuse("elements that may be null")
		}
		l.Element = &made
	}
	out.Shape = shape.OfList(made.Shape)
	out.Text, out.Rank = l.Text(false)
	return out, nil
}

// listIn compiles the left side of a projection. Several lists, as in [a, b][], are put together.
func (c *compiler) listIn(left jp.ASTNode, on term.Term, flattens bool) (term.Term, error) {
	if left.NodeType == jp.ASTSubexpression && left.Children[1].NodeType == jp.ASTMultiSelectList && flattens {
		object, err := c.node(left.Children[0], on)
		if err != nil {
			return object, err
		}
		return c.joined(left.Children[1], object)
	}
	if left.NodeType == jp.ASTMultiSelectList && flattens {
		return c.joined(left, on)
	}
	base, err := c.node(left, on)
	if err != nil {
		return base, err
	}
	if c.scope.Untyped && base.Shape.Kinds == shape.Any && base.Path != nil && len(c.names) == 0 {
		*c.guards = append(*c.guards, "type("+base.Path.Or("[]")+") == list")
		base.Shape = shape.OfList(shape.Unknown())
		base.List = c.listOf(base)
	}
	if base.List == nil || !base.Shape.Is(shape.List) {
		return base, refuse("a list of a value that may be none")
	}
	return base, nil
}

// joined puts lists together; one that is missing adds nothing.
func (c *compiler) joined(n jp.ASTNode, on term.Term) (term.Term, error) {
	if on.Null || on.Missing {
		return on, refuse("several lists of an object that may be missing")
	}
	text := ""
	var of shape.Shape
	for i, child := range n.Children {
		one, err := c.node(child, on)
		if err != nil {
			return one, err
		}
		soft, rank, ok := one.Softly("[]")
		if !ok || !one.Shape.Is(shape.List) {
			return one, refuse("several values of which one may be no list")
		}
		if i > 0 {
			text += " + "
		} else {
			of = one.Shape
		}
		text += term.Grouped(soft, rank, term.Product)
	}
	out := term.Term{Text: text, Rank: term.Sum, Shape: of}
	if len(n.Children) == 1 {
		out.Rank = term.Primary
	}
	out.List = term.ListOf(out, "item")
	out.List.Levels[0].Name = celtext.ElementName(lastName(n), c.taken)
	return out, nil
}

// lastName is the name of the last of several members.
func lastName(n jp.ASTNode) string {
	name, _ := n.Children[len(n.Children)-1].Value.(string)
	return name
}

// flatten takes the elements of lists for the lists.
func (c *compiler) flatten(l *term.List) error {
	each := l.Each()
	switch {
	case each.Shape.Is(shape.List):
	case each.Shape.May(shape.List) && each.Shape.Kinds != shape.Any:
		return refuse("[] of elements that may be lists")
	default:
		return nil
	}
	if _, _, ok := each.Softly("[]"); !ok || each.List == nil {
		return refuse("[] of elements that may be null")
	}
	l.Levels = append(l.Levels, each.List.Softened().Levels...)
	l.Element = each.List.Element
	return nil
}
