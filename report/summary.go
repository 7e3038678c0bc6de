package report

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
)

// Summary counts images by their answer. An object whose own answer is worse
// than that of all of its images (a rule that could not be asked, a reference
// that cannot be read) counts once more, by its own answer.
type Summary struct {
	Objects int `json:"objects"`
	Images  int `json:"images"`
	Allowed int `json:"allowed"`
	Denied  int `json:"denied"`
	// Unable could not be verified: nobody knows.
	Unable int `json:"unable"`
	// Warned have failures that do not deny, whatever their answer.
	Warned int `json:"warned"`
	// Unmatched are allowed images that no policy speaks of, and documents (no
	// Kubernetes objects) of which none does.
	Unmatched int `json:"unmatched"`
}

// Count sums outcomes up.
func Count(outcomes []gate.Outcome) Summary {
	s := Summary{Objects: len(outcomes)}
	for _, o := range outcomes {
		worst := gate.Allow
		for _, v := range o.Verdicts {
			s.Images++
			s.add(v.Answer)
			if len(v.Warnings) > 0 {
				s.Warned++
			}
			if v.Answer == gate.Allow && !v.Matched() {
				s.Unmatched++
			}
			if weight(v.Answer) > weight(worst) {
				worst = v.Answer
			}
		}
		if weight(o.Answer) > weight(worst) {
			s.add(o.Answer)
		}
		if len(o.Warnings) > 0 {
			s.Warned++
		}
		if isUnmatchedDocument(o) {
			s.Unmatched++
		}
	}
	return s
}

// isUnmatchedDocument reports whether no policy speaks of what is no object, which is
// allowed then, and about which nothing was asked.
func isUnmatchedDocument(o gate.Outcome) bool {
	return o.Subject != nil && o.Subject.Document && o.Answer == gate.Allow && !o.Matched()
}

func (s *Summary) add(answer gate.Answer) {
	switch answer {
	case gate.Allow:
		s.Allowed++
	case gate.Deny:
		s.Denied++
	default: // an answer that is not known is none
		s.Unable++
	}
}

// weight orders answers from good to bad.
func weight(answer gate.Answer) int {
	switch answer {
	case gate.Allow:
		return 0
	case gate.Deny:
		return 2
	default:
		return 1
	}
}

// ExitStatus returns the exit status of the command line: 1 if anything is
// denied, or unmatched where requireMatch asks for a policy; else 3 if anything
// could not be verified; else 0.
func (s Summary) ExitStatus(requireMatch bool) int {
	switch {
	case s.Denied > 0 || requireMatch && s.Unmatched > 0:
		return 1
	case s.Unable > 0:
		return 3
	default:
		return 0
	}
}

// String returns the sentence that ends a text, as in "3 allowed, 1 denied, 1
// could not be verified (1 warned)".
func (s Summary) String() string {
	var notes []string
	if s.Warned > 0 {
		notes = append(notes, fmt.Sprintf("%d warned", s.Warned))
	}
	if s.Unmatched > 0 {
		notes = append(notes, fmt.Sprintf("%d without policy", s.Unmatched))
	}
	text := fmt.Sprintf("%d allowed, %d denied, %d could not be verified", s.Allowed, s.Denied, s.Unable)
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}
