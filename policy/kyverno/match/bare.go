package match

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// Of a bare subject only some images and their namespace are known. What a rule
// asks beyond that is neither yes nor no: the rule cannot be asked.

// Unknown is the error for what a rule asks for and nobody knows.
func Unknown(what string) error {
	return fmt.Errorf("only images and their namespace are known here, and the rule asks for %s; the admission webhook knows the whole object", what)
}

// matchesBare is matches for a bare subject. What is known decides first, so that
// a filter which cannot match is a no, whatever else it asks. The subject is a
// pod of which nobody knows whether it is created or changed: a rule about either
// means it, and an exclusion means it only if it is for both.
func (f filter) matchesBare(s *policy.Subject, excluding bool) (bool, error) {
	d := f.Resources
	if len(f.kinds) > 0 && !slices.ContainsFunc(f.kinds, func(k kindSelector) bool { return k.matchesBare(s, excluding) }) {
		return false, nil
	}
	creates, updates := slices.Contains(d.Operations, "CREATE"), slices.Contains(d.Operations, "UPDATE")
	if len(d.Operations) > 0 && (!creates && !updates || excluding && creates != updates) {
		return false, nil
	}
	if s.Namespace != "" {
		if len(d.Namespaces) > 0 && !wildcard.Any(d.Namespaces, s.Namespace) {
			return false, nil
		}
		if matched, err := f.matchesNamespace(s); err != nil || !matched {
			return false, err
		}
	}
	return true, f.asksMore(s)
}

// asksMore returns what of a bare subject the filter asks for in vain.
func (f filter) asksMore(s *policy.Subject) error {
	d := f.Resources
	named := func(patterns []string) bool { return len(patterns) > 0 && !slices.Contains(patterns, "*") }
	switch {
	case s.Namespace == "" && (named(d.Namespaces) || d.NamespaceSelector != nil):
		return Unknown("the object's namespace")
	case named(f.names):
		return Unknown("the object's name")
	case len(d.Annotations) > 0:
		return Unknown("the object's annotations")
	case d.Selector != nil && len(d.Selector.MatchLabels)+len(d.Selector.MatchExpressions) > 0:
		return Unknown("the object's labels")
	case len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) > 0:
		return Unknown("who made the object")
	}
	return nil
}

// matchesBare: the images may be those of containers that are added later.
func (s kindSelector) matchesBare(subject *policy.Subject, excluding bool) bool {
	if excluding {
		return s.matches(subject)
	}
	later := *subject
	later.Subresource = "ephemeralcontainers"
	return s.matches(&later)
}
