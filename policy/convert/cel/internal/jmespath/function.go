package jmespath

import (
	"strings"

	jp "github.com/kyverno/go-jmespath"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
)

// function is a call. A missing argument is null, which the functions here refuse, so that an expression which
// fails is equal.
func (c *compiler) function(n jp.ASTNode, on term.Term) (term.Term, error) {
	name, _ := n.Value.(string)
	form := forms()[name]
	if form.compile == nil {
		return term.Term{}, refuse("the function %s()", name)
	}
	var arguments []term.Term
	for _, child := range n.Children {
		one, err := c.node(child, on)
		if err != nil {
			return term.Term{}, err
		}
		if one.Instead != nil {
			return term.Term{}, refuse("|| of values of two types in the function %s()", name)
		}
		*c.fails, *c.needs = *c.fails || !one.Sure() || one.Shape.Kinds == shape.Any, append(*c.needs, needsOf(one)...)
		arguments = append(arguments, one)
	}
	made, ok := form.compile(c, arguments)
	if !ok {
		return term.Term{}, refuse("the function %s() of these arguments", name)
	}
	return made, nil
}

// needsOf are the conditions under which a value is there.
func needsOf(t term.Term) []string {
	if there, ok := t.Present(); ok && there != "" {
		return []string{there}
	}
	return t.Needs
}

// are reports whether arguments are of a type. A text of which only the letters of ASCII are changed is none.
func are(kinds shape.Kinds, arguments ...term.Term) bool {
	for _, one := range arguments {
		if !one.Is(kinds) || one.ASCII {
			return false
		}
	}
	return true
}

// made is a call.
func made(of shape.Shape, text string) (term.Term, bool) {
	return term.Term{Text: text, Rank: term.Primary, Shape: of}, true
}

// text writes an argument that is used as a text. One of an unknown type fails if it is none.
func text(t term.Term) (string, bool) {
	switch {
	case t.Is(shape.Text) && !t.ASCII:
		return t.In(term.Primary), true
	case t.Shape.Kinds == shape.Any && !t.Null:
		return t.In(term.Primary), true // methods of texts take no others
	}
	return "", false
}

// method makes the form of a method of one text with others as its arguments.
func method(name string, of shape.Shape) func(*compiler, []term.Term) (term.Term, bool) {
	return func(_ *compiler, a []term.Term) (term.Term, bool) {
		if !are(shape.Text, a...) {
			return term.Term{}, false
		}
		var rest []string
		for _, one := range a[1:] {
			rest = append(rest, one.Text)
		}
		return made(of, a[0].In(term.Primary)+"."+name+"("+strings.Join(rest, ", ")+")")
	}
}

// call makes the form of a function of one text.
func call(before, after string, of shape.Shape) func(*compiler, []term.Term) (term.Term, bool) {
	return func(_ *compiler, a []term.Term) (term.Term, bool) {
		if !are(shape.Text, a...) {
			return term.Term{}, false
		}
		out, ok := made(of, before+a[0].Text+after)
		if of.Kinds == shape.Any {
			out.Path = &celtext.Path{Direct: out.Text}
		}
		return out, ok
	}
}

// length of a text counts characters in both languages.
func length(_ *compiler, a []term.Term) (term.Term, bool) {
	one := a[0]
	if one.Keys != nil {
		one = *one.Keys
	}
	if !one.Is(shape.Text|shape.List|shape.Object) && one.Shape.Kinds != shape.Any {
		return term.Term{}, false
	}
	return made(shape.OfNumber(), one.In(term.Primary)+".size()")
}

func contains(_ *compiler, a []term.Term) (term.Term, bool) {
	in, what := a[0], a[1]
	switch {
	case in.Keys != nil && what.Fixed != nil && what.Is(shape.Text):
		text := what.Text + " in " + in.Keys.In(term.Sum)
		if in.Keys.Shape.Kinds == shape.Any { // in a list the one fails, in a scalar the other
			return term.Term{Text: in.Keys.Path.At((*what.Fixed).(string)).Present + " || " + text, Rank: term.Or, Shape: shape.OfBool()}, in.Keys.Path != nil
		}
		return term.Term{Text: text, Rank: term.Relation, Shape: shape.OfBool()}, true
	case are(shape.Text, in, what):
		return made(shape.OfBool(), in.In(term.Primary)+".contains("+what.Text+")")
	case in.List == nil || !what.Sure() || !in.Is(shape.List) || what.ASCII || in.List.Each().ASCII:
		return term.Term{}, false
	}
	text, rank := in.List.Has(what, false)
	return term.Term{Text: text, Rank: rank, Shape: shape.OfBool()}, true
}

// letterCase changes letters of ASCII alone: the result may be compared with texts of ASCII.
func letterCase(name string) func(*compiler, []term.Term) (term.Term, bool) {
	return func(_ *compiler, a []term.Term) (term.Term, bool) {
		if !are(shape.Text, a...) {
			return term.Term{}, false
		}
		out, ok := made(shape.OfText(), a[0].In(term.Primary)+"."+name+"()")
		out.ASCII = true
		return out, ok
	}
}

func regexMatch(_ *compiler, a []term.Term) (term.Term, bool) {
	subject, ok := text(a[1])
	if !ok || a[0].Fixed == nil || !a[0].Is(shape.Text) {
		return term.Term{}, false
	}
	pattern, _ := (*a[0].Fixed).(string)
	return made(shape.OfBool(), subject+".matches("+celtext.Regexp(pattern)+")")
}

func patternMatch(_ *compiler, a []term.Term) (term.Term, bool) {
	if !are(shape.Text, a...) || a[0].Fixed == nil {
		return term.Term{}, false
	}
	pattern, _ := (*a[0].Fixed).(string)
	return term.Term{Text: celtext.Matches(pattern, a[1].In(term.Primary)), Rank: term.Relation, Shape: shape.OfBool()}, true
}

// keys are the names of an object's members. Their order in CEL is not that of the source, so that they are
// looked for, and counted.
func keys(c *compiler, a []term.Term) (term.Term, bool) {
	if !a[0].Is(shape.Object) && a[0].Shape.Kinds != shape.Any {
		return term.Term{}, false
	}
	element := shape.OfText()
	element.Plain = a[0].Shape.Closed()
	object := a[0].In(term.Primary)
	name := celtext.ElementName("keys", c.taken)
	out := term.Term{Shape: shape.OfList(element), Keys: &a[0], List: &term.List{Levels: []term.Level{{
		Strict: object, Soft: object, StrictRank: term.Primary, SoftRank: term.Primary, Name: name, Of: element, Names: true,
	}}}}
	out.Text, out.Rank = out.List.Text(false)
	return out, true
}

func joined(_ *compiler, a []term.Term) (term.Term, bool) {
	if !a[0].Is(shape.Text) || a[1].List == nil || a[1].Keys != nil || !are(shape.Text, a[1].List.Each()) {
		return term.Term{}, false
	}
	return made(shape.OfText(), a[1].In(term.Primary)+".join("+a[0].Text+")")
}

func labelMatch(c *compiler, a []term.Term) (term.Term, bool) {
	of, ok := a[0], a[1].Path != nil && are(shape.Object, a...) && are(shape.Text, term.Term{Shape: a[0].Shape.Element()}, term.Term{Shape: a[1].Shape.Element()})
	if !ok || a[0].Shape.Closed() || a[1].Shape.Closed() {
		return term.Term{}, false
	}
	key := celtext.ElementName("keys", c.taken)
	return made(shape.OfBool(), of.In(term.Primary)+".all("+key+", "+key+" in "+a[1].Text+" && "+a[1].Text+"["+key+"] == "+of.Text+"["+key+"])")
}

func divide(_ *compiler, a []term.Term) (term.Term, bool) {
	var amounts []string
	for _, one := range a {
		fixed := one.Fixed != nil && isQuantity(*one.Fixed)
		if !one.Is(shape.Text) || !one.Shape.Quantity && !fixed {
			return term.Term{}, false
		}
		amounts = append(amounts, "quantity("+one.Text+").asApproximateFloat()")
	}
	return term.Term{Text: strings.Join(amounts, " / "), Rank: term.Product, Shape: shape.Shape{Kinds: shape.Number, Full: true}}, true
}

func toString(_ *compiler, a []term.Term) (term.Term, bool) {
	out, err := asText(a[0])
	return out, err == nil && a[0].Sure() && a[0].Shape.Kinds != shape.Any // null is a text, too
}

// timeSince is the time since a moment until now. It is used as a duration alone.
func timeSince(_ *compiler, a []term.Term) (term.Term, bool) {
	for _, i := range []int{0, 2} {
		if a[i].Fixed == nil || *a[i].Fixed != any("") {
			return term.Term{}, false
		}
	}
	moment := a[1]
	if !moment.Is(shape.Text|shape.Null) && moment.Shape.Kinds != shape.Any || moment.ASCII {
		return term.Term{}, false
	}
	out := term.Term{Text: "time.now() - timestamp(" + moment.Text + ")", Rank: term.Sum, Duration: true}
	out.Shape.Kinds = shape.Text | shape.Object // of no type that another construct takes
	return out, true
}
