package convert

import (
	"fmt"
	"strings"
)

// Problem is a part of a policy that cannot be carried.
type Problem struct {
	// Path is where it stands, dotted, with indices in brackets; a file of several
	// documents has "document 2: " before it.
	Path string
	// Found is what stands there.
	Found string
	// Do is what to do about it.
	Do string
}

// Error returns "path: what was found: what to do".
func (p Problem) Error() string {
	text := p.Found + ": " + p.Do
	if p.Path != "" {
		text = p.Path + ": " + text
	}
	return text
}

// Refusal says what of a policy cannot be carried. Nothing of it was converted.
type Refusal struct {
	// Problems are all of them, in the order of reading; never empty.
	Problems []Problem
}

// Error returns one line for each problem.
func (r *Refusal) Error() string {
	lines := make([]string, 0, len(r.Problems)+1)
	lines = append(lines, fmt.Sprintf("the policy cannot be carried as it stands (%d):", len(r.Problems)))
	for _, p := range r.Problems {
		lines = append(lines, "  "+p.Error())
	}
	return strings.Join(lines, "\n")
}
