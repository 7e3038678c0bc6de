package convert

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/internal/source"
)

// Problem is a part of a policy that cannot be converted: its location, its content and
// the remedy.
type Problem = source.Problem

// Refusal lists the parts of a policy that cannot be converted. Nothing was converted.
type Refusal struct {
	// Problems are all of them, in the order of reading; never empty.
	Problems []Problem
}

// Error returns one line for each problem.
func (r *Refusal) Error() string {
	lines := make([]string, 0, len(r.Problems)+1)
	noun := "problem"
	if len(r.Problems) > 1 {
		noun += "s"
	}
	lines = append(lines, fmt.Sprintf("the policy cannot be converted (%d %s):", len(r.Problems), noun))
	for _, p := range r.Problems {
		lines = append(lines, "  "+p.Error())
	}
	return strings.Join(lines, "\n")
}
