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
	r.Entries(doc.Context)
	for _, entry := range doc.VerifyImages {
		r.Value(entry)
	}
	r.NeedOperation()
	r.Value(doc.Preconditions)
	return r
}

// operations returns the subject with each operation that it may have: a bare one is a pod that
// may be created or changed.
func operations(s *policy.Subject, reads rulecontext.Reading) []*policy.Subject {
	if !s.Bare || !reads.Operation() {
		return []*policy.Subject{s}
	}
	created, changed := *s, *s
	created.Operation, changed.Operation = "CREATE", "UPDATE"
	return []*policy.Subject{&created, &changed}
}

// coversPods reports whether the rule is certain to verify the pods of a controller that it
// verifies: no selection, precondition or variable may have another result for them.
func (r *compiledRule) coversPods(doc imagesRule) bool {
	return !r.hasPreconditions && !r.reads.OfObject() && match.SameForPodsOfControllers(doc.Match, doc.Exclude)
}
