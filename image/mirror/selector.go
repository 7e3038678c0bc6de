package mirror

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// selector selects the subjects of an entry.
type selector struct {
	namespace, object labels.Selector // nil selects all
	excluded          []Owner
}

// match evaluates the available values first: if they exclude the subject, the others are not
// needed.
func (s selector) match(about Subject) (bool, error) {
	if s.namespace != nil && about.NamespaceKnown && !s.namespace.Matches(labels.Set(about.NamespaceLabels)) {
		return false, nil
	}
	if !about.Bare {
		if s.object != nil && !s.object.Matches(labels.Set(about.Labels)) {
			return false, nil
		}
		for _, owner := range about.Owners {
			if slices.Contains(s.excluded, owner) {
				return false, nil
			}
		}
	}
	if s.namespace != nil && !about.NamespaceKnown {
		return false, errors.New("it selects by the labels of namespaces, and those are not known")
	}
	if about.Bare && (s.object != nil || len(s.excluded) > 0) {
		return false, errors.New("it selects by the object's labels or owners, and those are not known")
	}
	return true, nil
}

// isEmpty reports whether the entry applies to all subjects.
func (s selector) isEmpty() bool {
	return s.namespace == nil && s.object == nil && len(s.excluded) == 0
}

// equals reports whether both selectors have the same text.
func (s selector) equals(other selector) bool {
	text := func(l labels.Selector) string {
		if l == nil {
			return ""
		}
		return l.String()
	}
	return text(s.namespace) == text(other.namespace) && text(s.object) == text(other.object) && slices.Equal(s.excluded, other.excluded)
}
