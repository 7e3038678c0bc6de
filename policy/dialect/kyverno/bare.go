package kyverno

import (
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
)

// findsElsewhere reports whether the rule reads images from fields that a bare subject does not
// have, so that their absence proves nothing.
func (r *compiledRule) findsElsewhere(s *policy.Subject) bool {
	return s.Bare && len(r.extractors[s.Kind]) > 0
}

// asksMore returns the fields that the rule's expressions read and a bare subject does not have.
func (r *compiledRule) asksMore(s *policy.Subject) error {
	switch {
	case !s.Bare:
		return nil
	case r.findsElsewhere(s):
		return match.Unknown("images at places of its own (imageExtractors)")
	case s.Namespace == "" && r.namespaced:
		return match.Unknown("the object's namespace, being a rule of one")
	case !r.asks:
		return nil
	}
	return r.reads.Of(s)
}

// readingOf looks through all expressions of a rule, whether or not they would be
// evaluated.
func readingOf(doc imagesRule) rulecontext.Reading {
	var r rulecontext.Reading
	r.Value(doc.Preconditions)
	r.Entries(doc.Context)
	for _, entry := range doc.VerifyImages {
		r.Value(entry)
	}
	return r
}

// coversPods reports whether the rule is certain to verify the pods of a controller that it
// verifies: no selection, precondition or variable may have another result for them.
func (r *compiledRule) coversPods(doc imagesRule) bool {
	return !r.hasPreconditions && !r.reads.OfObject() && match.SameForPodsOfControllers(doc.Match, doc.Exclude)
}
