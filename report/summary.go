package report

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
)

// Summary counts images by their answer. An object with a worse answer than all of its images (a
// rule that could not be evaluated, an invalid reference) counts once more, by its own answer.
type Summary struct {
	Objects int `json:"objects"`
	Images  int `json:"images"`
	Allowed int `json:"allowed"`
	Denied  int `json:"denied"`
	// Errors counts images that could not be verified.
	Errors int `json:"unable"`
	// Warned counts images with failures that are not enforced, whatever their answer.
	Warned int `json:"warned"`
	// Unchecked counts allowed images that no policy matches, and documents (not Kubernetes
	// objects) without a match.
	Unchecked int `json:"unmatched"`
}

// Count summarizes outcomes.
func Count(outcomes []gate.Outcome) Summary {
	s := Summary{Objects: len(outcomes)}
	for _, o := range outcomes {
		worst := gate.Allow
		for _, v := range o.Verdicts {
			s.Images++
			s.add(v.Result)
			if len(v.Warnings) > 0 {
				s.Warned++
			}
			if v.Result == gate.Allow && !v.Matched() {
				s.Unchecked++
			}
			if weight(v.Result) > weight(worst) {
				worst = v.Result
			}
		}
		if weight(o.Result) > weight(worst) {
			s.add(o.Result)
		}
		if len(o.Warnings) > 0 {
			s.Warned++
		}
		if isUnmatchedDocument(o) {
			s.Unchecked++
		}
	}
	return s
}

// isUnmatchedDocument reports whether the object is a document that is not a Kubernetes object,
// and that no policy matches. It is allowed without any evaluation.
func isUnmatchedDocument(o gate.Outcome) bool {
	return o.Subject != nil && o.Subject.Document && o.Result == gate.Allow && !o.Matched()
}

func (s *Summary) add(answer gate.Result) {
	switch answer {
	case gate.Allow:
		s.Allowed++
	case gate.Deny:
		s.Denied++
	default: // an unknown answer is not counted
		s.Errors++
	}
}

// weight orders answers from good to bad.
func weight(answer gate.Result) int {
	switch answer {
	case gate.Allow:
		return 0
	case gate.Deny:
		return 2
	default:
		return 1
	}
}

// ExitStatus returns the exit status of the command line: 1 if anything is denied, or unmatched
// where requireMatch is set; else 3 if anything could not be verified; else 0.
func (s Summary) ExitStatus(requireMatch bool) int {
	switch {
	case s.Denied > 0 || requireMatch && s.Unchecked > 0:
		return 1
	case s.Errors > 0:
		return 3
	default:
		return 0
	}
}

// String returns the last sentence of a text, as in "3 allowed, 1 denied, 1 could not be verified
// (1 warned)".
func (s Summary) String() string {
	var notes []string
	if s.Warned > 0 {
		notes = append(notes, fmt.Sprintf("%d warned", s.Warned))
	}
	if s.Unchecked > 0 {
		notes = append(notes, fmt.Sprintf("%d without policy", s.Unchecked))
	}
	text := fmt.Sprintf("%d allowed, %d denied, %d could not be verified", s.Allowed, s.Denied, s.Errors)
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}
