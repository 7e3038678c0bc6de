package constraint

import (
	"errors"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/logic"
)

var (
	errNamespaceUnknown = errors.New(
		"the policy selects by labels of the object's namespace, and they are not known; on the command line, give the Namespace with --resource FILE")
	errNotText       = errors.New("the policy selects by labels, and a value in metadata.labels is not text")
	errObjectUnknown = errors.New("the policy selects by the object's labels, and the object is not known")
)

// matchesNamespace: an object in no namespace is selected, as in Kubernetes, and a
// Namespace by its own labels. Kubernetes reads the new labels of an update and the
// stored ones of a deletion; here either is enough at an update, so that a request cannot
// take the policy away with the label.
func (c *Constraint) matchesNamespace(s *policy.Subject) logic.Value {
	if c.namespace == nil {
		return logic.Is(true)
	}
	isNamespace := s.Group == "" && s.Kind == "Namespace"
	switch {
	case isNamespace && c.native:
		return c.matchesNamespaceNatively(s)
	case isNamespace && (!s.Object.IsZero() || !s.OldObject.IsZero()):
		return matchesEither(c.namespace, s)
	case s.Bare && s.Namespace == "":
		return logic.Indeterminate(lacking("the object's namespace"))
	case s.NamespaceKnown && (!isNamespace || s.Operation == string(admission.Delete)):
		return logic.Is(c.namespace.Matches(labels.Set(s.NamespaceLabels)))
	case s.Namespace == "" && !isNamespace:
		if cluster, known := clusterScoped(s.Group, s.Kind); cluster || !known {
			return logic.Is(true)
		}
	}
	return logic.Indeterminate(errNamespaceUnknown)
}

// matchesObject: the new object or the old one is enough, as in Kubernetes, so that a
// label which is taken away does not take the policy away.
func (c *Constraint) matchesObject(s *policy.Subject) logic.Value {
	switch {
	case c.object == nil:
		return logic.Is(true)
	case s.Bare:
		return logic.Indeterminate(lacking("the object's labels"))
	case s.Object.IsZero() && s.OldObject.IsZero():
		return logic.Indeterminate(errObjectUnknown)
	case c.native:
		return c.matchesObjectNatively(s)
	}
	return matchesEither(c.object, s)
}

func matchesEither(selector labels.Selector, s *policy.Subject) logic.Value {
	known := slices.DeleteFunc([]policy.Content{s.Object, s.OldObject}, policy.Content.IsZero)
	return logic.Any(known, func(object policy.Content) logic.Value {
		set, err := labelsOf(object)
		switch {
		case err != nil:
			return logic.Indeterminate(err)
		case selector.Matches(set):
			return logic.Is(true)
		}
		// The requester writes the labels of an Eviction or a Scale, which are not the
		// pod's or the Deployment's: they may select it, and not deselect it.
		return logic.Is(!isOwn(s, object) && selector.Matches(labels.Set{}))
	})
}

// isOwn reports whether an object is of the subject's kind, not of another that its
// subresource has, as an Eviction of a pod.
func isOwn(s *policy.Subject, object policy.Content) bool {
	kind, ok := object.Map()["kind"].(string)
	return !s.IsBody() && (!ok || kind == s.Kind)
}

func metadataOf(object policy.Content) map[string]any {
	metadata, _ := object.Map()["metadata"].(map[string]any)
	return metadata
}

// labelsOf returns an object's labels. A label that is no text, as a file may have one,
// is not absent: the API server refuses the object or reads it otherwise.
func labelsOf(object policy.Content) (labels.Set, error) {
	written, ok := metadataOf(object)["labels"].(map[string]any)
	if !ok && metadataOf(object)["labels"] != nil {
		return nil, errors.New("the policy selects by labels, and metadata.labels is not an object")
	}
	set := make(labels.Set, len(written))
	for key, value := range written {
		text, ok := value.(string)
		if !ok {
			return nil, errNotText
		}
		set[key] = text
	}
	return set, nil
}
