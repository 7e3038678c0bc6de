package deploy_test

import (
	"slices"
	"testing"
)

// TestColumns: kubectl shows the readiness, action and message of each policy.
func TestColumns(t *testing.T) {
	policies := 0
	for _, object := range read(t) {
		d, is := object.(*definition)
		if !is || !slices.Contains([]string{"kyverno.io", "policies.kyverno.io", "policy.sigstore.dev"}, d.Spec.Group) {
			continue
		}
		want := []string{"Ready", "Action", "Age", "Message"}
		switch d.Spec.Names.Kind {
		case "PolicyException", "GlobalContextEntry":
			continue
		case "MutatingPolicy", "NamespacedMutatingPolicy", "GeneratingPolicy", "NamespacedGeneratingPolicy", "TrustRoot":
			want = []string{"Ready", "Age", "Message"}
		case "CleanupPolicy", "ClusterCleanupPolicy", "DeletingPolicy", "NamespacedDeletingPolicy":
			want = []string{"Ready", "Schedule", "Age", "Message"}
		}
		policies++
		for _, version := range d.Spec.Versions {
			var names []string
			for _, column := range version.Columns {
				names = append(names, column.Name)
				if column.Priority != 0 {
					t.Errorf("%s %s: %s is shown with -o wide alone", d.Spec.Names.Kind, version.Name, column.Name)
				}
			}
			if !slices.Equal(names, want) {
				t.Errorf("%s %s: columns %v, want %v", d.Spec.Names.Kind, version.Name, names, want)
			}
		}
	}
	if policies != 16 {
		t.Errorf("%d kinds of policies", policies)
	}
}
