package match

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Of a bare subject only some images and their namespace are known. A field that needs
// more is indeterminate.

// Unknown is the cause of a field that a bare subject does not have.
func Unknown(what string) error {
	return fmt.Errorf("only images and their namespace are known here, and the rule asks for %s; the admission webhook knows the whole object", what)
}

// matchesBare is matches for a bare subject. Known values decide first, so that a filter which
// cannot match is false, whatever its other conditions are. The subject is a pod that may be
// created or changed: a rule for either operation applies to it, and an exclusion only if it
// covers both.
func (f *filter) matchesBare(s *policy.Subject, polarity Polarity) logic.Value {
	d := &f.Resources
	if len(f.kinds) > 0 && !slices.ContainsFunc(f.kinds, func(k kindSelector) bool { return k.matchesBare(s, polarity) }) {
		return logic.Is(false)
	}
	creates, updates := slices.Contains(d.Operations, "CREATE"), slices.Contains(d.Operations, "UPDATE")
	if len(d.Operations) > 0 && (!creates && !updates || polarity != Selecting && creates != updates) {
		return logic.Is(false)
	}
	if s.Namespace != "" {
		if len(d.Namespaces) > 0 && !wildcard.Any(d.Namespaces, s.Namespace) {
			return logic.Is(false)
		}
		if matched := f.matchesNamespace(s, polarity); !matched.True() {
			return matched
		}
	}
	if err := f.asksMore(s); err != nil {
		return logic.Indeterminate(err)
	}
	return logic.Is(true)
}

// asksMore returns the first condition of the filter that is unknown for a bare subject.
func (f *filter) asksMore(s *policy.Subject) error {
	d := &f.Resources
	named := func(patterns []string) bool { return len(patterns) > 0 && !slices.Contains(patterns, "*") }
	switch {
	case s.Namespace == "" && (named(d.Namespaces) || d.NamespaceSelector != nil):
		return Unknown("the object's namespace")
	case named(f.names):
		return Unknown("the object's name")
	case len(d.Annotations) > 0:
		return Unknown("the object's annotations")
	case d.Selector != nil && d.Selector.selects():
		return Unknown("the object's labels")
	case len(f.Subjects)+len(f.Roles)+len(f.ClusterRoles) > 0:
		return Unknown("the requester of the object")
	}
	return nil
}

// matchesBare: the images may be those of containers that are added later.
func (s kindSelector) matchesBare(subject *policy.Subject, polarity Polarity) bool {
	if polarity != Selecting {
		return s.matches(subject, true).True()
	}
	later := *subject
	later.Subresource = ephemeralContainers
	return s.matches(&later, false).True()
}
