package report

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
)

// Summary counts images by their result. An object with a worse result than all of its images (a
// rule that could not be evaluated, an invalid reference) counts once more, by its own result.
type Summary struct {
	Objects int `json:"objects"`
	Images  int `json:"images"`
	Allowed int `json:"allowed"`
	Denied  int `json:"denied"`
	// Errors counts images that could not be verified.
	Errors int `json:"errors"`
	// Warned counts images with failures that are not enforced, whatever their result.
	Warned int `json:"warned"`
	// Unchecked counts images that no policy matches, and documents (not Kubernetes objects)
	// without a match. Objects without images are not counted: most manifests have some.
	Unchecked int `json:"unchecked"`
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
			worst = gate.First(worst, v.Result)
		}
		if o.Result.Compare(worst) < 0 {
			s.add(o.Result)
		}
		if len(o.Warnings) > 0 {
			s.Warned++
		}
		if isUncheckedDocument(o) {
			s.Unchecked++
		}
	}
	return s
}

// isUncheckedDocument reports whether the object is a document that is not a Kubernetes object,
// and that no policy matches.
func isUncheckedDocument(o gate.Outcome) bool {
	return o.Subject != nil && o.Subject.Document && o.Result == gate.Unchecked
}

func (s *Summary) add(r gate.Result) {
	switch r {
	case gate.Allow:
		s.Allowed++
	case gate.Unchecked:
		s.Unchecked++
	case gate.Deny:
		s.Denied++
	default: // an unknown result did not allow
		s.Errors++
	}
}

// Exit statuses of the command line for decisions. They are a contract, documented in docs/cli.md.
const (
	ExitAllowed = 0
	ExitDenied  = 1
	ExitError   = 3
)

// ExitStatus returns ExitDenied if anything is denied; else ExitError if anything could not be
// verified; else ExitDenied if anything is unchecked and requireMatch is set; else ExitAllowed.
func (s Summary) ExitStatus(requireMatch bool) int {
	switch {
	case s.Denied > 0:
		return ExitDenied
	case s.Errors > 0:
		return ExitError
	case requireMatch && s.Unchecked > 0:
		return ExitDenied
	default:
		return ExitAllowed
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
		notes = append(notes, fmt.Sprintf("%d unchecked", s.Unchecked))
	}
	text := fmt.Sprintf("%d allowed, %d denied, %d could not be verified", s.Allowed, s.Denied, s.Errors)
	if len(notes) > 0 {
		text += " (" + strings.Join(notes, ", ") + ")"
	}
	return text
}
