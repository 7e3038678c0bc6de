package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/workload"
)

// supported are the kinds of policy documents, each with its API versions.
var supported = []struct{ group, versions, kinds string }{
	{"kyverno.io", "v1, v2beta1", "ClusterPolicy, Policy"},
	{"kyverno.io", "v2, v2beta1", "PolicyException"},
	{"policies.kyverno.io", "v1, v1beta1, v1alpha1", "ImageValidatingPolicy, NamespacedImageValidatingPolicy, ValidatingPolicy, NamespacedValidatingPolicy, MutatingPolicy, NamespacedMutatingPolicy, PolicyException"},
	{"policy.sigstore.dev", "v1beta1, v1alpha1", "ClusterImagePolicy"},
	{"policy.sigstore.dev", "v1alpha1", "TrustRoot"},
	{"quaymaster.dev", "v1alpha1", "ImageOverride"},
}

// UnsupportedKind returns the error about a document that is no policy of a supported kind.
func UnsupportedKind(o workload.Object) error {
	var list []string
	for _, s := range supported {
		list = append(list, s.kinds+" ("+s.group+"/"+s.versions+")")
	}
	return fmt.Errorf("%s: unsupported kind %s %s; supported: %s", o.Source(), o.APIVersion(), o.Kind(), strings.Join(list, "; "))
}

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
