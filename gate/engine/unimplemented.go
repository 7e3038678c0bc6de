package engine

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/workload"
)

// supported are the kinds of policy documents, each with its API versions.
var supported = []struct{ group, versions, kinds string }{
	{"kyverno.io", "v1, v2beta1", "ClusterPolicy, Policy"},
	{"kyverno.io", "v2, v2beta1", "PolicyException, CleanupPolicy, ClusterCleanupPolicy"},
	{"policies.kyverno.io", "v1, v1beta1, v1alpha1", "ImageValidatingPolicy, NamespacedImageValidatingPolicy, ValidatingPolicy, NamespacedValidatingPolicy, MutatingPolicy, NamespacedMutatingPolicy, DeletingPolicy, NamespacedDeletingPolicy, GeneratingPolicy, NamespacedGeneratingPolicy, PolicyException"},
	{"admissionregistration.k8s.io", "v1, v1beta1, v1alpha1", "ValidatingAdmissionPolicy, MutatingAdmissionPolicy"},
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
