package evaluation

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
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

// InNamespace sets the namespace of objects that have none, as kubectl does, and removes that of
// cluster-scoped ones, as the API server does.
func InNamespace(objects []workload.Object, namespace string, kinds []constraint.Resource) []workload.Object {
	out := slices.Clone(objects)
	for i, o := range out {
		cluster := InNoNamespace(kinds, o.Group(), o.Kind())
		if o.IsDocument() || cluster == (o.Namespace() == "") {
			continue
		}
		var content map[string]any
		decoder := json.NewDecoder(bytes.NewReader(o.JSON()))
		decoder.UseNumber() // a float64 rounds large integers
		if decoder.Decode(&content) != nil {
			continue
		}
		meta, _ := content["metadata"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
		}
		content["metadata"] = meta
		if cluster {
			delete(meta, "namespace")
		} else {
			meta["namespace"] = namespace
		}
		if placed, err := o.With(content); err == nil {
			out[i] = placed
		}
	}
	return out
}
