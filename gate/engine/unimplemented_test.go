package engine_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/workload"
)

// TestLeftAside: documents of the kinds that are not implemented are named, and no others.
func TestLeftAside(t *testing.T) {
	for _, c := range []struct {
		apiVersion, kind string
		is               bool
	}{
		{"policies.kyverno.io/v1", "DeletingPolicy", true},
		{"policies.kyverno.io/v1beta1", "NamespacedGeneratingPolicy", true},
		{"kyverno.io/v2", "ClusterCleanupPolicy", true},
		{"admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding", true},
		{"policies.kyverno.io/v1", "ValidatingPolicy", false},
		{"kyverno.io/v1", "ClusterPolicy", false},
		{"example.com/v1", "DeletingPolicy", false},
		{"kyverno.io/v2", "DeletingPolicy", false},
		{"admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", false},
		{"v1", "Pod", false},
	} {
		objects, err := workload.Read(strings.NewReader("apiVersion: "+c.apiVersion+"\nkind: "+c.kind+"\nmetadata: {name: a}\n"), "some.yaml")
		if err != nil || len(objects) != 1 {
			t.Fatal(objects, err)
		}
		got := engine.LeftAside(objects[0])
		if (got != "") != c.is || c.is && (!strings.Contains(got, "some.yaml") || !strings.Contains(got, c.kind+" a")) {
			t.Errorf("%s %s: %q", c.apiVersion, c.kind, got)
		}
	}
}
