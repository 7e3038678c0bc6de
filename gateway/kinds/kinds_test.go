package kinds

import (
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster/document"
)

// TestDeleting: policies that delete are watched and validated, and admission does not wait for them.
func TestDeleting(t *testing.T) {
	for _, resource := range []string{"cleanuppolicies", "clustercleanuppolicies", "deletingpolicies", "namespaceddeletingpolicies"} {
		i := slices.IndexFunc(Watched(), func(k document.Kind) bool { return k.Resource == resource })
		if i < 0 || Watched()[i].Awaited {
			t.Errorf("%s: watched at %d", resource, i)
		}
		if !slices.ContainsFunc(Validated(), func(r schema.GroupResource) bool { return r.Resource == resource }) {
			t.Errorf("%s is not validated", resource)
		}
	}
}

// TestReferenceOf: the ID of a policy names its object.
func TestReferenceOf(t *testing.T) {
	for id, want := range map[string]core.ObjectReference{
		"ClusterPolicy/one":            {APIVersion: "kyverno.io/v1", Kind: "ClusterPolicy", Name: "one"},
		"Policy/shop/two":              {APIVersion: "kyverno.io/v1", Kind: "Policy", Namespace: "shop", Name: "two"},
		"NamespacedMutatingPolicy/a/b": {APIVersion: "policies.kyverno.io/v1", Kind: "NamespacedMutatingPolicy", Namespace: "a", Name: "b"},
		"":                             {}, "Nonsense/one": {}, "one": {},
	} {
		if got := ReferenceOf(id); got != want {
			t.Errorf("%q: %+v, want %+v", id, got, want)
		}
	}
}
