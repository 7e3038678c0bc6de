package gateway

import (
	"slices"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/workload"
)

// namespaceName is the label by which the API server names every namespace.
const namespaceName = "kubernetes.io/metadata.name"

// Place puts a request about an object that names no namespace where the API server
// puts it: one of the cluster's in none, whatever namespace was meant for the others,
// and a Namespace in itself.
func (r *Reader) Place(request *gate.Request) {
	object, s := request.Object, &request.Subject
	if object.IsZero() || object.IsDocument() || !r.ofCluster(object.Group(), object.Kind()) {
		return
	}
	s.Namespace, s.NamespaceKnown, s.NamespaceLabels = "", false, nil
	if object.Group() == "" && object.Kind() == "Namespace" {
		s.Namespace, s.NamespaceKnown, s.NamespaceLabels = object.Name(), true, ownLabels(object)
	}
}

// ofCluster reports whether objects of a kind are in no namespace. A kind that nobody
// serves is taken for one in namespaces.
func (r *Reader) ofCluster(group, kind string) bool {
	for _, one := range r.servedKinds() {
		if one.Group == group && one.Kind == kind {
			return !one.Namespaced
		}
	}
	return slices.ContainsFunc(constraint.Known(), func(one constraint.Resource) bool {
		return one.Group == group && one.Kind == kind && one.Cluster
	})
}

func (r *Reader) servedKinds() []configuration.Resource {
	if r.options.Material != nil {
		return r.options.Material.Kinds
	}
	if r.g.kinds == nil {
		return nil
	}
	if list := r.g.kinds.current.Load(); list != nil {
		return *list
	}
	return nil
}

// ownLabels are those that a Namespace has once it is made.
func ownLabels(namespace workload.Object) map[string]string {
	metadata, _ := namespace.Content()["metadata"].(map[string]any)
	given, _ := metadata["labels"].(map[string]any)
	labels := map[string]string{}
	for key, value := range given {
		labels[key], _ = value.(string)
	}
	labels[namespaceName] = namespace.Name()
	return labels
}
