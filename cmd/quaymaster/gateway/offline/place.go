package offline

import (
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// namespaceName is the label by which the API server names every namespace.
const namespaceName = "kubernetes.io/metadata.name"

// Place sets the namespace of a request about an object without one, as the API server does: none
// for a cluster-scoped object, whatever namespace is the default for others, and its own name for
// a Namespace.
func (r *Reader) Place(request *gate.Request) {
	object, s := request.Object, &request.Subject
	if object.IsZero() || object.IsDocument() || !r.ofCluster(object.Group(), object.Kind()) {
		return
	}
	request.ClusterScoped, request.Object = true, stored.In(object, "")
	s.Namespace, s.NamespaceKnown, s.NamespaceLabels = "", false, nil
	if object.Group() == "" && object.Kind() == "Namespace" {
		s.Namespace, s.NamespaceKnown, s.NamespaceLabels = object.Name(), true, ownLabels(object)
	}
}

// ofCluster reports whether objects of a kind are cluster-scoped. A kind that is not served
// counts as namespaced.
func (r *Reader) ofCluster(group, kind string) bool {
	for _, one := range r.servedKinds() {
		if one.Group == group && one.Kind == kind {
			return !one.Namespaced
		}
	}
	return constraint.IsClusterScoped(group, kind)
}

func (r *Reader) servedKinds() []configuration.Resource {
	if r.options.Material != nil {
		return r.options.Material.Kinds
	}
	if r.documents.Kinds == nil {
		return nil
	}
	return r.documents.Kinds.Resources()
}

// ownLabels are the labels of a Namespace after its creation.
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
