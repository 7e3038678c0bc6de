package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/workload"
)

// LeftAside returns a warning about a policy document of an unsupported kind; empty for any
// other document.
func LeftAside(o workload.Object) string {
	kinds := map[string][]string{
		"kyverno.io":          {"CleanupPolicy", "ClusterCleanupPolicy"},
		"policies.kyverno.io": {"DeletingPolicy", "NamespacedDeletingPolicy", "GeneratingPolicy", "NamespacedGeneratingPolicy"},
		"admissionregistration.k8s.io": {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
			"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"},
	}
	group, _, _ := strings.Cut(o.APIVersion(), "/")
	if !slices.Contains(kinds[group], o.Kind()) {
		return ""
	}
	return fmt.Sprintf("%s: %s %s is left aside: kind %s of %s is not implemented", o.Source(), o.Kind(), o.Name(), o.Kind(), o.APIVersion())
}
