package policy

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Target is a kind of object in a policy's words.
type Target struct {
	// Group, Version, Kind and Subresource may hold the wildcards * and ?; Kind is never empty. An
	// empty Group is the core group, an empty Subresource the object itself.
	Group, Version, Kind, Subresource string
	// Resource is one that the policy names, of which no kind is known (Kind *), or one of several;
	// empty for every kind. Means does not read it.
	Resource string
	// Operations are CREATE, UPDATE, DELETE and CONNECT; none means CREATE and UPDATE.
	Operations []string
	// Namespaces are patterns for the namespaces that the policy is confined to; none means all
	// of them, and cluster-scoped objects.
	Namespaces []string
	// Labelled are the only namespaces that the policy selects by the label of their names
	// (kubernetes.io/metadata.name), which the API server sets; none means any. Files may give a
	// namespace other labels, and so Means does not read it.
	Labelled []string
	// Unserved: the kind of the resource with the name Kind is unknown, and so the target matches
	// no object yet.
	Unserved bool
}

// SelectsAmong reports whether the label of the names of namespaces selects some of these alone. A
// custom kind of the same name may nevertheless be cluster-scoped.
func (t Target) SelectsAmong(namespaces []string) bool {
	return len(t.Labelled) > 0 && !slices.ContainsFunc(t.Labelled, func(n string) bool { return !slices.Contains(namespaces, n) })
}

// Unserved is a resource that a policy names and the API server does not serve at present. The
// policy matches no such object. It is compiled again when the resource is served.
type Unserved struct {
	// Err is the message for the field.
	Err error
	// MayCome: a definition or an aggregated API may bring it. Else it is Kubernetes' own
	// to have, and most likely misspelt.
	MayCome bool
}

// Means reports whether a target may match a subject, for any operation: by its group, kind,
// subresource and namespace. An object in another version is of the same resource. A target for
// Pods includes ephemeral containers. A bare subject may be of such containers, and in any
// namespace if it names none.
func (t Target) Means(s *Subject) bool {
	const added = "ephemeralcontainers"
	if s.IsBody() {
		of, known := s.Resource()
		return t.Subresource != "" && wildcard.Match(t.Subresource, s.Subresource) && (!known || wildcard.Match(t.Group, of.Group)) && t.inNamespaceOf(s)
	}
	return wildcard.Match(t.Kind, s.Kind) && wildcard.Match(t.Group, s.Group) &&
		(wildcard.Match(t.Subresource, s.Subresource) || t.Subresource == "" && s.Subresource == added || t.Subresource == added && s.Bare) && t.inNamespaceOf(s)
}

func (t Target) inNamespaceOf(s *Subject) bool {
	return len(t.Namespaces) == 0 || wildcard.Any(t.Namespaces, s.Namespace) || s.Bare && s.Namespace == ""
}

// IsAt reports whether a target is about an operation; one of a subresource that names
// none is about CONNECT, too.
func (t Target) IsAt(operation string) bool {
	if len(t.Operations) > 0 {
		return slices.Contains(t.Operations, operation)
	}
	return operation == "CREATE" || operation == "UPDATE" || operation == "CONNECT" && t.Subresource != ""
}
