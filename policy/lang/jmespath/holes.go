package jmespath

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	jp "github.com/kyverno/go-jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath/internal/function"
)

// Piece is a part of an expression: its text, or a hole for a value that is
// known only when the expression is evaluated.
type Piece struct {
	Text string
	Hole bool // Text is ignored
}

// The position of a hole decides the meaning of its value. Markers replace holes while the
// expression is parsed; they are of a private use area, and an expression that contains them is
// refused.
const (
	markOpen  = '\uE000'
	markClose = '\uE001'
	// indexBase marks a hole in an index, `list[{{i}}]`: no real index is so large.
	indexBase = 1 << 40
)

type slotKind byte

const (
	slotText  slotKind = iota // in '...' or "...": part of a string or of a key
	slotPath                  // after a dot or as part of a name: a key, or a path of plain names
	slotValue                 // anywhere else: the value itself
	slotJSON                  // `...` with holes: JSON
	slotIndex                 // [...]: a number
)

type slot struct {
	kind   slotKind
	hole   int
	pieces []Piece // of a slotJSON; its holes are numbered from hole on
}

// CompilePieces parses an expression with holes. A hole in a quoted string or
// key is part of it; in a JSON literal it is JSON; after a dot it is a key or
// a path of plain names; in an index a number; anywhere else a value. Errors
// are *SyntaxError.
func (e *Engine) CompilePieces(pieces []Piece) (*Query, error) {
	b := builder{}
	for _, piece := range pieces {
		if piece.Hole {
			b.source.WriteString("{{" + strconv.Itoa(b.holes) + "}}")
			b.runes = append(b.runes, char{hole: b.holes, isHole: true})
			b.holes++
			continue
		}
		b.source.WriteString(piece.Text)
		for _, r := range piece.Text {
			b.runes = append(b.runes, char{r: r})
		}
	}
	source := b.source.String()
	fail := func(err error) (*Query, error) { return nil, &SyntaxError{Expression: source, Err: err} }
	if len(source) > maxExpression {
		return fail(function.TooLarge("the length", len(source), maxExpression))
	}
	if err := b.write(); err != nil {
		return fail(err)
	}
	ast, err := parse(b.out.String())
	if err != nil {
		return fail(err)
	}
	if err := e.checkOperations(ast); err != nil {
		return fail(err)
	}
	inside, varies := callsInside(ast, false), callsVarying(ast)
	reads := rootsOf(ast) // before calls of ours are put in, which take the data itself
	ast, err = e.prepare(ast, 0)
	if err != nil {
		return fail(err)
	}
	ast = numbered(ast)
	query := &Query{
		engine: e, source: source, ast: ast, slots: b.slots, holes: b.holes, pays: b.holes > 0 || calls(ast),
		roots: reads, paths: readPaths(ast), simple: simpleOf(ast), callsInside: inside, varies: varies,
	}
	query.foreign, query.members = e.reads(reads), readMembers(query.paths)
	return query, nil
}

// parse calls the library and recovers from its panics: its parser reads past the end of some
// truncated expressions.
func parse(text string) (ast jp.ASTNode, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the expression is incomplete")
		}
	}()
	if strings.TrimSpace(text) == "" {
		return jp.ASTNode{}, errors.New("the expression is empty")
	}
	return jp.NewParser().Parse(text)
}

type char struct {
	r      rune // 0 for a hole
	hole   int
	isHole bool
}

// builder rewrites an expression with holes to one with markers.
type builder struct {
	source strings.Builder
	runes  []char
	holes  int
	out    strings.Builder
	slots  []slot
	depth  int
}

// mark adds a slot and returns its marker.
func (b *builder) mark(s slot) string {
	b.slots = append(b.slots, s)
	return string(markOpen) + strconv.Itoa(len(b.slots)-1) + string(markClose)
}

func (b *builder) write() error {
	for i := 0; i < len(b.runes); {
		c := b.runes[i]
		switch {
		case c.r == markOpen || c.r == markClose:
			return fmt.Errorf("the character %U is not allowed", c.r)
		case c.r == '\'' || c.r == '"' || c.r == '`':
			next, err := b.quoted(i)
			if err != nil {
				return err
			}
			i = next
		case c.isHole || isName(c.r):
			i = b.name(i)
		default:
			switch c.r {
			case '(', '[', '{', '!', '&':
				b.depth++
			case ')', ']', '}':
				b.depth--
			}
			if b.depth > maxNesting {
				return function.TooLarge("nesting", b.depth, maxNesting)
			}
			b.out.WriteRune(c.r)
			i++
		}
	}
	return nil
}

// quoted copies a '...', "..." or `...` that starts at i and returns where it ends.
func (b *builder) quoted(i int) (int, error) {
	quote := b.runes[i].r
	end, first := i+1, 0
	holes := 0
	for ; end < len(b.runes) && b.runes[end].r != quote; end++ {
		c := b.runes[end]
		if c.isHole {
			if holes == 0 {
				first = c.hole
			}
			holes++
		}
		// In '...' a backslash is one unless a quote follows; elsewhere it
		// escapes whatever does.
		if c.r == '\\' && end+1 < len(b.runes) && !b.runes[end+1].isHole && (quote != '\'' || b.runes[end+1].r == '\'') {
			end++
		}
	}
	if end >= len(b.runes) {
		return 0, fmt.Errorf("%c is not closed", quote)
	}
	inside := b.runes[i+1 : end]
	if quote == '`' && holes > 0 {
		s := slot{kind: slotJSON, hole: first, pieces: literalPieces(inside)}
		b.out.WriteString("`\"" + b.mark(s) + "\"`")
		return end + 1, nil
	}
	b.out.WriteRune(quote)
	for _, c := range inside {
		switch {
		case c.isHole:
			b.out.WriteString(b.mark(slot{kind: slotText, hole: c.hole}))
		case c.r == markOpen || c.r == markClose:
			return 0, fmt.Errorf("the character %U is not allowed", c.r)
		default:
			b.out.WriteRune(c.r)
		}
	}
	b.out.WriteRune(quote)
	return end + 1, nil
}

func literalPieces(inside []char) []Piece {
	var pieces []Piece
	var text strings.Builder
	for i, c := range inside {
		if c.isHole {
			pieces = append(pieces, Piece{Text: text.String()}, Piece{Hole: true})
			text.Reset()
		} else if c.r != '\\' || i+1 >= len(inside) || inside[i+1].r != '`' {
			text.WriteRune(c.r)
		}
	}
	return append(pieces, Piece{Text: text.String()})
}

// name copies a run of name characters and holes that starts at i and returns
// where it ends.
func (b *builder) name(i int) int {
	end, holes := i, 0
	for ; end < len(b.runes) && (b.runes[end].isHole || isName(b.runes[end].r)); end++ {
		if b.runes[end].isHole {
			holes++
		}
	}
	run := b.runes[i:end]
	before, after := b.neighbour(i-1, -1), b.neighbour(end, 1)
	switch {
	case holes == 0:
		for _, c := range run {
			b.out.WriteRune(c.r)
		}
	case len(run) == 1 && before == '[' && after == ']' && !b.listBefore(i):
		b.slots = append(b.slots, slot{kind: slotIndex, hole: run[0].hole})
		b.out.WriteString(strconv.Itoa(indexBase + len(b.slots) - 1))
	case len(run) == 1 && before != '.':
		b.out.WriteString("`\"" + b.mark(slot{kind: slotValue, hole: run[0].hole}) + "\"`")
	default:
		b.out.WriteByte('"')
		for _, c := range run {
			if c.isHole {
				b.out.WriteString(b.mark(slot{kind: slotPath, hole: c.hole}))
			} else {
				b.out.WriteRune(c.r)
			}
		}
		b.out.WriteByte('"')
	}
	return end
}

// neighbour returns the next character that is no space, from i in steps.
func (b *builder) neighbour(i, step int) rune {
	for ; i >= 0 && i < len(b.runes); i += step {
		if c := b.runes[i]; !strings.ContainsRune(" \t\r\n", c.r) {
			return c.r
		}
	}
	return 0
}

// listBefore reports whether the bracket before i opens a list, `a.[x]`,
// rather than an index, `a[0]`.
func (b *builder) listBefore(i int) bool {
	for i--; b.runes[i].r != '['; i-- {
	}
	before := b.neighbour(i-1, -1)
	return before == '.' || before == '(' || before == ','
}

func isName(r rune) bool {
	return r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}
