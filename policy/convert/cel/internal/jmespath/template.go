package jmespath

import (
	"encoding/json"
	"strconv"
	"strings"

	jp "github.com/kyverno/go-jmespath"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/template"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/term"
	engine "github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// The marks of a variable within an expression, of a private use area; and the mark of one that is all of a
// literal between backquotes.
const (
	markOpen  = "\uE000"
	markClose = "\uE001"
	markJSON  = "\uE002"
)

// compile parses and compiles an expression, in which there may be variables, on a value.
func (s Scope) compile(text string, on term.Term) (term.Term, error) {
	parts, ok := template.Split(text)
	if !ok {
		return term.Term{}, refuse("a variable that is not closed")
	}
	c := &compiler{scope: s, fails: new(bool), guards: new([]string), needs: new([]string)}
	var source strings.Builder
	for i, p := range parts {
		if !p.Expression {
			source.WriteString(strings.ReplaceAll(p.Text, "{{", `\{{`))
			continue
		}
		hole, err := s.compile(p.Text, term.Term{})
		if err != nil {
			return term.Term{}, err
		}
		mark := markOpen + strconv.Itoa(len(c.holes)) + markClose
		if template.EndsInLiteral(parts[:i]) {
			mark = `"` + markJSON + mark + `"`
		}
		source.WriteString(mark)
		c.holes = append(c.holes, hole)
	}
	tree, err := parse(source.String())
	if err != nil {
		return term.Term{}, refuse("%v", err)
	}
	made, err := c.node(tree, on)
	if made.Missing {
		*c.needs = append(*c.needs, needsOf(made)...)
	}
	made.Needs = *c.needs
	made.Fails, made.Guards = *c.fails || on.Fails || on.Missing, *c.guards
	for _, hole := range c.holes {
		made.Fails, made.Guards = made.Fails || hole.Fails || hole.Missing, append(made.Guards, hole.Guards...)
	}
	return made, err
}

// parse calls the library and recovers from its panics at some expressions that are cut off.
func parse(text string) (tree jp.ASTNode, err error) {
	defer func() {
		if recover() != nil {
			err = refuse("the expression is incomplete")
		}
	}()
	return jp.NewParser().Parse(text)
}

// literal is a value that is written, with the variables in it.
func (c *compiler) literal(v any) (term.Term, error) {
	text, isText := v.(string)
	if number, ok := strings.CutPrefix(text, markJSON+markOpen); isText && ok {
		n, err := strconv.Atoi(strings.TrimSuffix(number, markClose))
		if err != nil || n >= len(c.holes) || c.holes[n].May(shape.Text) {
			return term.Term{}, refuse("a text that is read as JSON")
		}
		return c.needed(c.holes[n])
	}
	if !isText || !strings.Contains(text, markOpen) {
		encoded, err := json.Marshal(v)
		if err != nil || strings.Contains(string(encoded), markOpen) {
			return term.Term{}, refuse("a variable within a literal of JSON")
		}
		return term.Fixed(v), nil
	}
	return c.filled(text)
}

// needed is a variable within the expression, which the source evaluates first. Within a list it may not be
// evaluated in CEL, so that a guard requires it.
func (c *compiler) needed(hole term.Term) (term.Term, error) {
	if len(c.names) == 0 || hole.Sure() && !hole.Fails {
		return hole, nil
	}
	there, ok := hole.Present()
	if !ok || there == "" || hole.Fails {
		return hole, refuse("a variable that may be missing, for the elements of a list")
	}
	hole = hole.Known()
	*c.guards = append(*c.guards, hole.In(term.Sum)+" != null") // which fails where it is missing
	return hole, nil
}

// filled is a text with marks of variables. A text in quotes is a text, whatever the variable.
func (c *compiler) filled(text string) (term.Term, error) {
	var pieces []term.Term
	for text != "" {
		before, rest, found := strings.Cut(text, markOpen)
		if before != "" {
			pieces = append(pieces, term.Fixed(before))
		}
		if !found {
			break
		}
		number, after, _ := strings.Cut(rest, markClose)
		n, err := strconv.Atoi(number)
		if err != nil || n >= len(c.holes) {
			return term.Term{}, refuse("a mark of a variable")
		}
		hole, err := c.needed(c.holes[n])
		if err != nil {
			return term.Term{}, err
		}
		pieces, text = append(pieces, hole), after
	}
	return concatenated(pieces)
}

// concatenated puts texts together.
func concatenated(pieces []term.Term) (term.Term, error) {
	out := term.Term{Shape: shape.OfText(), Rank: term.Sum}
	var texts []string
	for _, one := range pieces {
		text, err := asText(one)
		if err != nil {
			return term.Term{}, err
		}
		out.Missing, out.Null, out.Fails = out.Missing || one.Missing, out.Null || one.Null, out.Fails || one.Fails
		texts = append(texts, text.In(term.Product))
	}
	switch len(texts) {
	case 0:
		return term.Fixed(""), nil
	case 1:
		text, err := asText(pieces[0])
		return text, err
	}
	out.Text = strings.Join(texts, " + ")
	return out, nil
}

// asText writes a value as it reads within a text.
func asText(v term.Term) (term.Term, error) {
	switch {
	case v.Null:
		return v, refuse("a value that may be null within a text")
	case v.Is(shape.Text|shape.Null) && !v.Is(shape.Text):
		if v.Path == nil || v.Path.Direct != v.Text {
			return v, refuse("a value that may be null within a text")
		}
		v.Shape.Kinds = shape.Text // null fails where a text is needed
		return v, nil
	case v.ASCII:
		return v, refuse("letters that are changed in ASCII alone, within a text")
	case v.Shape.Is(shape.Text):
		return v, nil
	case v.Is(shape.Bool), v.Is(shape.Number) && v.Shape.Whole, v.Is(shape.Text | shape.Number), v.Shape.Kinds == shape.Any:
		if v.Fixed != nil {
			return term.Fixed(v.Text), nil
		}
		return term.Term{Text: "string(" + v.Text + ")", Rank: term.Primary, Shape: shape.OfText(), Missing: v.Missing}, nil
	}
	return v, refuse("a value that may be no text within a text")
}

// isQuantity reports whether a literal is a text that is a quantity.
func isQuantity(v any) bool {
	text, isText := v.(string)
	_, err := engine.ParseQuantity(text)
	return isText && err == nil
}
