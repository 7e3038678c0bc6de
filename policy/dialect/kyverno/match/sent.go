package match

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/builtin"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// The body of a request for a subresource is often of another kind than the object that
// the subresource belongs to: that of Pod/exec is a PodExecOptions. Rules name the object.

// matchesSent reports whether the selector selects the parent object of a subresource, by the
// kind of the request body.
func (s *kindSelector) matchesSent(subject *policy.Subject) bool {
	return slices.ContainsFunc(builtin.AllSent(), func(one builtin.Sent) bool {
		return one.Subresource == subject.Subresource && one.Kind == subject.Kind && one.Group == subject.Group &&
			wildcard.Match(s.kind, one.Of) && wildcard.Match(s.group, "") && wildcard.Match(s.version, "v1")
	})
}

// isSent reports whether the body is one that belongs to a kind of the core group alone.
func isSent(subject *policy.Subject) bool {
	of, known := subject.Resource()
	return (!known || of.Group == "") && slices.ContainsFunc(builtin.AllSent(), func(one builtin.Sent) bool {
		return one.Subresource == subject.Subresource && one.Kind == subject.Kind && one.Group == subject.Group
	})
}

// matchesParent is for a subject with the kind of its body, such as a Scale, which may belong to
// objects of many kinds: a selector that names a kind is indeterminate.
func (s *kindSelector) matchesParent(subject *policy.Subject) logic.Value {
	of, known := subject.Resource()
	switch {
	case known && (!wildcard.Match(s.group, of.Group) || !wildcard.Match(s.version, of.Version)):
		return logic.Is(false)
	case s.kind == "*" && (known || s.group == "*" && s.version == "*"):
		return logic.Is(true)
	}
	return logic.Indeterminate(fmt.Errorf("the rule selects %s of the kind %s, and the kind of the object of the %s is not known",
		subject.Subresource, s.kind, subject.Subresource))
}

// WithSent adds to targets the kinds of the bodies for the subresources among them, to
// which the rule applies, too.
func WithSent(targets []policy.Target) []policy.Target {
	list := targets
	for _, t := range targets {
		if t.Subresource == "" || t.Kind == "*" {
			continue
		}
		for _, one := range builtin.AllSent() {
			if wildcard.Match(t.Subresource, one.Subresource) && wildcard.Match(t.Kind, one.Of) {
				more := t
				more.Group, more.Version, more.Kind, more.Subresource = one.Group, "*", one.Kind, one.Subresource
				list = JoinTargets(list[:len(list):len(list)], []policy.Target{more})
			}
		}
	}
	return list
}

// WithoutSent leaves out what WithSent adds: webhook rules name objects and their
// subresources.
func WithoutSent(targets []policy.Target) []policy.Target {
	return slices.DeleteFunc(slices.Clone(targets), func(t policy.Target) bool {
		return slices.ContainsFunc(builtin.AllSent(), func(one builtin.Sent) bool {
			return t.Kind == one.Kind && t.Group == one.Group && t.Subresource == one.Subresource && t.Version == "*"
		})
	})
}
