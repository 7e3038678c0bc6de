package variable

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// compileText reads a string: text, `\{{`, and variables.
func (c compiler) compileText(s, path string) (node, error) {
	if !strings.Contains(s, "{{") {
		return constant{s}, nil
	}
	p := parser{engine: c.engine, text: s, path: path}
	parts, err := p.parts()
	if err != nil {
		return nil, &CompileError{Path: path, Err: err}
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	return text{parts: parts, path: path}, nil
}

// parser reads one string from left to right.
type parser struct {
	engine *jmespath.Engine
	text   string
	pos    int
	path   string
}

// parts returns the text and the variables of the whole string; none if it is empty.
func (p *parser) parts() ([]node, error) {
	var parts []node
	var plain strings.Builder
	flush := func() {
		if plain.Len() > 0 {
			parts = append(parts, constant{plain.String()})
			plain.Reset()
		}
	}
	for p.pos < len(p.text) {
		switch {
		case p.at(`\{{`):
			plain.WriteString("{{")
			p.pos += 3
		case p.at("{{"):
			flush()
			v, err := p.variable(0)
			if err != nil {
				return nil, err
			}
			parts = append(parts, v)
		default:
			plain.WriteByte(p.text[p.pos])
			p.pos++
		}
	}
	flush()
	return parts, nil
}

func (p *parser) at(s string) bool { return strings.HasPrefix(p.text[p.pos:], s) }

// variable reads a variable that starts here, with those inside it. Single
// braces, of a hash or a literal, are counted so that they do not end it.
func (p *parser) variable(depth int) (node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("variables in variables %w of %d", jmespath.ErrTooLarge, maxDepth)
	}
	start := p.pos
	p.pos += 2
	from, braces := p.pos, 0
	var pieces []jmespath.Piece
	var holes []node
	for p.pos < len(p.text) {
		switch {
		case p.at("{{"):
			pieces = append(pieces, jmespath.Piece{Text: p.text[from:p.pos]}, jmespath.Piece{Hole: true})
			hole, err := p.variable(depth + 1)
			if err != nil {
				return nil, err
			}
			holes = append(holes, hole)
			from = p.pos
		case p.at("{"):
			braces++
			p.pos++
		case p.at("}") && braces > 0:
			braces--
			p.pos++
		case p.at("}}"):
			pieces = append(pieces, jmespath.Piece{Text: p.text[from:p.pos]})
			p.pos += 2
			return p.compile(start, pieces, holes)
		default:
			p.pos++
		}
	}
	return nil, errors.New("a variable is opened by {{ and not closed by }}: close it, or write \\{{ for plain text")
}

func (p *parser) compile(start int, pieces []jmespath.Piece, holes []node) (node, error) {
	source := strings.TrimSpace(p.text[start+2 : p.pos-2])
	query, err := p.engine.CompilePieces(pieces)
	if err != nil {
		return nil, fmt.Errorf("variable {{%s}}: %w", source, err)
	}
	if i, pasted := query.ExpressionHole(); pasted {
		inner, _ := holes[i].(variable)
		return nil, fmt.Errorf("variable {{%s}}: the variable {{%s}} is in the place of an expression, and an expression must not come from data: "+
			"write the expression itself, or the variable in quotes", source, inner.source)
	}
	if foreign(holes) {
		query = query.OnForeign()
	}
	return variable{query: query, holes: holes, source: source, path: p.path}, nil
}

// errUnbalanced is of an expression that ends before its text does.
var errUnbalanced = errors.New("the braces of the expression are not balanced")

// Substitute returns the text of an expression, in which there may be variables, with the values of those that read
// nothing but constants pasted in, as Kyverno does. The constants must be the policy's own: an author of data would write
// expressions. Other variables stay, and so does one that is the whole text and has no text as its value.
func Substitute(engine *jmespath.Engine, source string, constants Context) string {
	p := parser{engine: engine, text: source}
	var out strings.Builder
	for p.pos < len(p.text) {
		start := p.pos
		switch {
		case p.at(`\{{`):
			p.pos += 3
		case p.at("{{"):
			n, err := p.variable(0)
			if err != nil {
				return source
			}
			value, err := constantOf(n, constants)
			_, isText := value.(string)
			if err == nil && (isText || p.pos-start < len(source)) {
				out.WriteString(jmespath.Text(value))
				continue
			}
		default:
			p.pos++
		}
		out.WriteString(p.text[start:p.pos])
	}
	return out.String()
}

// errNoConstant is of a value that depends on more than constants.
var errNoConstant = errors.New("depends on data")

// constantOf evaluates a node that depends on nothing but constants.
func constantOf(n node, constants Context) (any, error) {
	var r reading
	n.reads(&r)
	unknown := func(name string) bool { _, known := constants[name]; return !known }
	if r.any || r.varies || slices.ContainsFunc(r.names, unknown) {
		return nil, errNoConstant
	}
	return n.execute(constants)
}

// Constant returns a value with the variables in it filled in, and an expression, which may be empty, evaluated on it;
// false if one of them depends on more than constants, fails, or is null.
func Constant(engine *jmespath.Engine, value any, expression string, constants Context) (any, bool) {
	t, err := Compile(engine, value)
	if err != nil {
		return nil, false
	}
	found, err := constantOf(t.root, constants)
	if err != nil || expression == "" {
		return found, err == nil
	}
	e, err := CompileExpression(engine, Substitute(engine, expression, constants), "")
	if err != nil || len(e.variable.holes) > 0 || e.variable.query.Varies() {
		return nil, false
	}
	found, err = e.EvaluateOn(found, nil)
	return found, err == nil && found != nil
}
