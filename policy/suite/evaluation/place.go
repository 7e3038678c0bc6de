package evaluation

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
	"github.com/quaymaster/quaymaster/workload/stored"
)

// InNoNamespace reports whether a kind is cluster-scoped, by the given kinds. Unknown kinds
// count as namespaced.
func InNoNamespace(kinds []constraint.Resource, group, kind string) bool {
	if i := slices.IndexFunc(kinds, func(r constraint.Resource) bool { return r.Group == group && r.Kind == kind }); i >= 0 {
		return kinds[i].Cluster
	}
	return slices.Contains(policyKinds, group+"/"+kind)
}

// policyKinds are the cluster-scoped kinds of policies and related documents.
var policyKinds = []string{
	"kyverno.io/ClusterPolicy", "kyverno.io/ClusterCleanupPolicy", "kyverno.io/GlobalContextEntry",
	"policies.kyverno.io/ValidatingPolicy", "policies.kyverno.io/ImageValidatingPolicy", "policies.kyverno.io/MutatingPolicy",
	"policies.kyverno.io/GeneratingPolicy", "policies.kyverno.io/DeletingPolicy",
	"policy.sigstore.dev/ClusterImagePolicy", "policy.sigstore.dev/TrustRoot", "policy/PodSecurityPolicy",
	"quaymaster.dev/RegistryMirror", "quaymaster.dev/ImageOverride",
}

// groupKind is a kind in its group, or a resource.
type groupKind struct{ group, kind string }

// InNamespace sets the namespace of objects that have none, as kubectl does, and removes that of
// cluster-scoped ones, as the API server does.
func InNamespace(objects []workload.Object, namespace string, kinds []constraint.Resource) []workload.Object {
	out := slices.Clone(objects)
	known := map[groupKind]bool{}
	for i, o := range out {
		of := groupKind{o.Group(), o.Kind()}
		cluster, is := known[of]
		if !is {
			cluster = InNoNamespace(kinds, o.Group(), o.Kind())
			known[of] = cluster
		}
		switch {
		case o.IsDocument() || cluster == (o.Namespace() == ""):
		case cluster:
			out[i] = stored.In(o, "")
		default:
			out[i] = stored.In(o, namespace)
		}
	}
	return out
}
