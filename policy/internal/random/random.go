// Package random generates random texts that match a regular expression, for both rule languages.
package random

import (
	"errors"
	"fmt"
	"io"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

const (
	// Most bounds the result of Text, in bytes.
	Most = 4 << 10
	// maxRepeat bounds the open repetitions * and +.
	maxRepeat = 10
	// maxPattern bounds a pattern, in bytes.
	maxPattern = 8 << 10
)

// ErrTooLong means that the text would have more than Most bytes.
var ErrTooLong = fmt.Errorf("the random text has more than %d bytes", Most)

// Text returns a text that the regular expression matches, with each choice equally likely, using
// random bytes from source. The open repetitions * and + produce at most 10 items; the text has
// at most Most bytes.
func Text(pattern string, source io.Reader) (string, error) {
	if pattern == "" || len(pattern) > maxPattern {
		return "", fmt.Errorf("a pattern of %d bytes, where 1 to %d are allowed", len(pattern), maxPattern)
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return "", err
	}
	g := generator{source: source}
	if err := g.write(parsed); err != nil {
		return "", err
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
	for fair := (1 << 32) / n * n; ; {
		var b [4]byte
		if _, err := io.ReadFull(g.source, b[:]); err != nil {
			return 0, fmt.Errorf("read randomness: %w", err)
		}
		if v := int(b[0]) | int(b[1])<<8 | int(b[2])<<16 | int(b[3])<<24; v < fair {
			return v % n, nil
		}
	}
}

func (g *generator) write(re *syntax.Regexp) error {
	g.steps++
	if g.out.Len() > Most || g.steps > 4*Most {
		return ErrTooLong
	}
	switch re.Op {
	case syntax.OpLiteral:
		g.out.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		return g.class(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return g.class([]rune{' ', '~'})
	case syntax.OpConcat, syntax.OpCapture:
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

// class picks from the printable ASCII part of a class if it has one, so that [^a]
// makes no control characters, and else from all of it.
func (g *generator) class(ranges []rune) error {
	kept, total := within(ranges, ' ', '~')
	if total == 0 {
		kept, total = within(ranges, 0, utf8.MaxRune)
	}
	if total == 0 {
		return errors.New("nothing matches a class of the pattern")
	}
	n, err := g.below(total)
	if err != nil {
		return err
	}
	for i := 0; i+1 < len(kept); i += 2 {
		size := int(kept[i+1]-kept[i]) + 1
		if n < size {
			g.out.WriteRune(kept[i] + rune(n))
			break
		}
		n -= size
	}
	return nil
}

// within cuts ranges to those between low and high, and counts their characters.
func within(ranges []rune, low, high rune) (kept []rune, total int) {
	for i := 0; i+1 < len(ranges); i += 2 {
		if from, to := max(ranges[i], low), min(ranges[i+1], high); from <= to {
			kept = append(kept, from, to)
			total += int(to-from) + 1
		}
	}
	return kept, total
}
