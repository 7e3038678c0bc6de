// Package expression bounds regular expressions (RE2, as in Go) before they are compiled.
//
// The program of a few bytes may have thousands of instructions, as of a{1000}, and the table of a class
// such as \pL more than a thousand characters. The parser keeps repetitions as they are, so a text of
// bounded length is parsed in little memory.
package expression

import (
	"fmt"
	"regexp/syntax"
)

// most is the greatest size that is computed; a larger one has no effect.
const most = 1 << 20

const (
	// MaxProgram bounds the size of one expression. Expressions for identities have a size of some 200.
	MaxProgram = 10_000
	// MaxPrograms bounds the sizes of all expressions of one policy together, and so their memory to some ten MiB.
	MaxPrograms = 50_000
)

// Sum is the size of the expressions of one policy.
type Sum int

// Add adds an expression. It refuses one that exceeds a bound, alone or with those before.
func (s *Sum) Add(text string) error {
	size, err := Size(text)
	switch {
	case err != nil:
		return err
	case size > MaxProgram:
		return fmt.Errorf("a regular expression compiles to some %d instructions, more than the bound of %d: repeat less, or use *", size, MaxProgram)
	}
	*s += Sum(size)
	if *s > MaxPrograms {
		return fmt.Errorf("the regular expressions of the policy compile to more than %d instructions together: repeat less, or use *", MaxPrograms)
	}
	return nil
}

// Size returns about the number of instructions that an expression compiles to: never less, and up to three times
// as many. Each instruction takes some 50 bytes. The caller bounds the length of the text. The error is that
// of the parser.
func Size(text string) (int, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, err
	}
	return sizeOf(parsed), nil
}

func sizeOf(re *syntax.Regexp) int {
	size := 1
	switch re.Op {
	case syntax.OpLiteral:
		size += len(re.Rune)
	case syntax.OpCharClass: // one instruction with a table of 4 bytes for each character
		size += len(re.Rune) / 10
	case syntax.OpCapture, syntax.OpStar: // the beginning and the end; a loop, and the way around it
		size++
	case syntax.OpAlternate:
		size += len(re.Sub)
	}
	for _, sub := range re.Sub {
		size += sizeOf(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(re.Min, re.Max, 1) + 1
	}
	return min(size, most)
}
