package variable

import (
	"errors"
	"fmt"
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
	if foreign(holes) {
		query = query.OnForeign()
	}
	return variable{query: query, holes: holes, source: source, path: p.path}, nil
}

// errUnbalanced is of an expression that ends before its text does.
var errUnbalanced = errors.New("the braces of the expression are not balanced")
