package jmespath

import (
	"errors"
	"fmt"
	"io"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// random returns a text that the regular expression matches, each choice
// equally likely. What `*` and `+` leave open is bounded by maxRepeat.
func (e *Engine) random(a arguments) (any, error) {
	if a.text(0) == "" {
		return nil, errors.New("the pattern is empty")
	}
	if len(a.text(0)) > maxPattern {
		return nil, tooLarge("the pattern", len(a.text(0)), maxPattern)
	}
	re, err := syntax.Parse(a.text(0), syntax.Perl)
	if err != nil {
		return nil, err
	}
	g := generator{source: e.options.Random}
	if err := g.write(re); err != nil {
		return nil, err
	}
	return g.out.String(), nil
}

type generator struct {
	source io.Reader
	out    strings.Builder
	steps  int
}

// below returns a number from 0 to n-1, without the bias of a remainder.
func (g *generator) below(n int) (int, error) {
	if n <= 1 {
		return 0, nil
	}
	limit := (1 << 32) / n * n
	for {
		var b [4]byte
		if _, err := io.ReadFull(g.source, b[:]); err != nil {
			return 0, fmt.Errorf("randomness: %w", err)
		}
		v := int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24
		if v < limit {
			return v % n, nil
		}
	}
}

func (g *generator) write(re *syntax.Regexp) error {
	g.steps++
	if g.out.Len() > maxRandom || g.steps > 4*maxRandom {
		return fmt.Errorf("the result %w of %d characters", ErrTooLarge, maxRandom)
	}
	switch re.Op {
	case syntax.OpLiteral:
		g.out.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		return g.class(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return g.class([]rune{' ', '~'})
	case syntax.OpConcat:
		for _, part := range re.Sub {
			if err := g.write(part); err != nil {
				return err
			}
		}
	case syntax.OpAlternate:
		i, err := g.below(len(re.Sub))
		if err != nil {
			return err
		}
		return g.write(re.Sub[i])
	case syntax.OpCapture:
		return g.write(re.Sub[0])
	case syntax.OpStar:
		return g.repeat(re.Sub[0], 0, maxRepeat)
	case syntax.OpPlus:
		return g.repeat(re.Sub[0], 1, maxRepeat)
	case syntax.OpQuest:
		return g.repeat(re.Sub[0], 0, 1)
	case syntax.OpRepeat:
		most := re.Max
		if most < 0 {
			most = re.Min + maxRepeat
		}
		return g.repeat(re.Sub[0], re.Min, most)
	case syntax.OpNoMatch:
		return errors.New("nothing matches the pattern")
	}
	return nil // anchors and the empty match
}

func (g *generator) repeat(re *syntax.Regexp, least, most int) error {
	more, err := g.below(most - least + 1)
	for i := 0; i < least+more && err == nil; i++ {
		err = g.write(re)
	}
	return err
}

// class picks from the printable ASCII part of a class if it has one, so that
// [^a] does not yield a surprise, and else from the whole class.
func (g *generator) class(ranges []rune) error {
	pick := func(low, high rune) ([]rune, int) {
		var kept []rune
		total := 0
		for i := 0; i+1 < len(ranges); i += 2 {
			from, to := max(ranges[i], low), min(ranges[i+1], high)
			if from <= to {
				kept = append(kept, from, to)
				total += int(to-from) + 1
			}
		}
		return kept, total
	}
	kept, total := pick(' ', '~')
	if total == 0 {
		kept, total = pick(0, utf8.MaxRune)
	}
	n, err := g.below(total)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(kept); i += 2 {
		if size := int(kept[i+1]-kept[i]) + 1; n < size {
			g.out.WriteRune(kept[i] + rune(n))
			return nil
		} else {
			n -= size
		}
	}
	return errors.New("nothing matches a class of the pattern")
}
