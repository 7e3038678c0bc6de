package kinds

import (
	"slices"
	"testing"

	core "k8s.io/api/core/v1"
)

// TestKindsLeftAlone: documents of kinds that are not implemented are watched, so that they
// are counted and listed, and nothing waits for them or asks about them.
func TestKindsLeftAlone(t *testing.T) {
	var left []string
	for _, kind := range Policies() {
		if kind.Status == NotImplemented {
			left = append(left, kind.Resource)
		}
	}
	if len(left) != 6 {
		t.Fatalf("left alone: %v", left)
	}
	watched := 0
	for _, kind := range Watched() {
		if slices.Contains(left, kind.Resource) {
			watched++
			if kind.Awaited {
				t.Errorf("the gateway waits for %s", kind.Resource)
			}
		}
	}
	if watched != len(left) {
		t.Errorf("%d of %d kinds are watched", watched, len(left))
	}
	for _, resource := range Validated() {
		if slices.Contains(left, resource.Resource) {
			t.Errorf("the webhook for policies is called for %s", resource)
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
