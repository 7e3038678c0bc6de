// Package checker answers: was anything wrong let in, said or lost?
//
// It knows of each pod what should have been decided, and holds against that what the API
// server answered (Answers), what is stored in the end (Stored) and what the gateways' decision
// logs say (Replay). It asks nobody.
package checker

import (
	"cmp"
	"fmt"
	"slices"
)

// Kind is what is wrong, the worst first.
type Kind int

// The kinds.
const (
	// WrongYes: something was let in that nobody proved, or another digest than was proved.
	WrongYes Kind = iota
	// WrongWord: an answer or a line says of an image what is not so.
	WrongWord
	// LostRecord: of an answer there is no line.
	LostRecord
	// Contradiction: a line says something else than the answer.
	Contradiction
	// Refused: a signed image was refused although nothing that failed explains it.
	Refused
)

// String implements fmt.Stringer.
func (k Kind) String() string {
	return [...]string{"WRONG YES", "WRONG WORD", "LOST RECORD", "CONTRADICTION", "REFUSED"}[k]
}

// Finding is something that is wrong.
type Finding struct {
	Kind Kind
	What string
}

// String implements fmt.Stringer.
func (f Finding) String() string { return f.Kind.String() + ": " + f.What }

// Sort puts the worst first.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int { return cmp.Compare(a.Kind, b.Kind) })
}

func found(kind Kind, format string, args ...any) Finding {
	return Finding{Kind: kind, What: fmt.Sprintf(format, args...)}
}
