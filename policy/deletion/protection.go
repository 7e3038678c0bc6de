package deletion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
)

// DefaultLimit is the number of objects that one run of a policy deletes by default: a policy with a
// mistake in its selection is stopped before it removes everything.
const DefaultLimit = 100

// Kind is a kind of objects; an empty Group is the core group.
type Kind struct{ Group, Kind string }

// String returns the kind as settings have it: Namespace, or apps/Deployment.
func (k Kind) String() string { return strings.TrimPrefix(k.Group+"/"+k.Kind, "/") }

// ParseKind reads a kind as settings have it.
func ParseKind(text string) (Kind, error) {
	group, kind, found := strings.Cut(text, "/")
	if !found {
		group, kind = "", text
	}
	if kind == "" || found && group == "" || strings.ContainsAny(text, "*? ") || strings.Contains(kind, "/") {
		return Kind{}, fmt.Errorf("%q is not a kind: write Kind for the core group and group/Kind for others, without a version and wildcards", text)
	}
	return Kind{Group: group, Kind: kind}, nil
}

// Protection says which objects are never deleted. The zero Protection protects everything that
// it can: settings only take away from it, except for Namespace.
type Protection struct {
	// Namespace is the gateway's own; empty if it runs in none.
	Namespace string
	// AllowedKinds are kinds that are not protected where a policy names them. Objects of these
	// kinds stay protected in protected namespaces.
	AllowedKinds []Kind
	// AllowedNamespaces are namespaces that are not protected.
	AllowedNamespaces []string
}

// Namespaces returns the protected namespaces, in order.
func (p Protection) Namespaces() []string {
	all := []string{"kube-node-lease", "kube-public", "kube-system"}
	if p.Namespace != "" {
		all = append(all, p.Namespace)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(n string) bool { return slices.Contains(p.AllowedNamespaces, n) })
}

// Of returns why an object is protected from a policy's rule, a clause for messages; empty if it
// is not. Labels are the object's.
func (p Protection) Of(rule policy.Deletion, subject *policy.Subject, labels map[string]any) string {
	kind := Kind{Group: subject.Group, Kind: subject.Kind}
	namespace := subject.Namespace
	if kind == (Kind{Kind: "Namespace"}) {
		namespace = subject.Name
	}
	if slices.Contains(p.Namespaces(), namespace) {
		return "the namespace " + namespace + " is protected"
	}
	why := protectedKind(kind, subject, labels)
	switch {
	case why == "":
		return ""
	case !slices.Contains(p.AllowedKinds, kind):
		return why
	case !isNamed(rule, kind):
		return why + ", and the policy does not name the kind with its group"
	}
	return ""
}

// protectedKind returns why a kind is protected; empty if it is not.
func protectedKind(kind Kind, subject *policy.Subject, labels map[string]any) string {
	switch {
	case kind == Kind{Kind: "Namespace"}:
		return "Namespaces are protected"
	case kind == Kind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return "CustomResourceDefinitions are protected"
	case policy.IsDocument(kind.Group):
		return "the documents of " + kind.Group + " are protected"
	case kind.Group == "admissionregistration.k8s.io":
		return "objects that configure admission are protected"
	// Objects in namespaces are not protected by this label: their authors could set it.
	case subject.Namespace == "" && labels["app.kubernetes.io/name"] == "quaymaster":
		return "objects of the gateway are protected"
	}
	return ""
}

// isNamed reports whether a rule names a kind with its group.
func isNamed(rule policy.Deletion, kind Kind) bool {
	return slices.ContainsFunc(rule.Targets(), func(t policy.Target) bool { return t.Kind == kind.Kind && t.Group == kind.Group })
}
