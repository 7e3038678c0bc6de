// Package checker finds wrong admissions, wrong answers and lost records.
//
// It has the expected decision of each pod, and compares it with the API server's answers
// (Answers), the pods that are stored at the end (Stored) and the gateways' decision logs
// (Replay). It sends no requests.
package checker

import (
	"cmp"
	"fmt"
	"slices"
)

// Kind is a kind of error, the worst first.
type Kind int

// The kinds.
const (
	// WrongYes: an unverified image was admitted, or another digest than the verified one.
	WrongYes Kind = iota
	// WrongWord: an answer or a line reports a wrong result of an image.
	WrongWord
	// LostRecord: of an answer there is no line.
	LostRecord
	// Contradiction: a line differs from the answer.
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
