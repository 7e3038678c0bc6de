package gateway

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster/document"
)

// policyKind is a custom resource for policies, or for their dependencies.
type policyKind struct {
	document.Kind
	// kind is the kind in documents.
	kind string
	// status is the location of the status.
	status statusForm
}

// statusForm is the location of a kind's conditions.
type statusForm int

// The forms.
const (
	noStatus        statusForm = iota // it has none, or the gateway does not write it
	plainStatus                       // status.conditions
	conditionStatus                   // status.conditionStatus, next to ready
	ownStatus                         // status.conditions, of the gateway's own kinds
	leftAlone                         // the kind is not implemented: its documents are counted and listed
)

// The groups of policies.
const (
	policyGroup   = "kyverno.io"
	celGroup      = "policies.kyverno.io"
	sigstoreGroup = "policy.sigstore.dev"
	ownGroup      = "quaymaster.dev"
)

// policyKinds are all of them, with the supported versions, the preferred one first. For a
// ClusterImagePolicy that is the stored version: the conversion to the other is part of
// policy-controller and is deleted with it.
func policyKinds() []policyKind {
	of := func(group, resource, kind string, status statusForm, versions ...string) policyKind {
		return policyKind{Kind: document.Kind{Group: group, Resource: resource, Versions: versions}, kind: kind, status: status}
	}
	return []policyKind{
		of(policyGroup, "clusterpolicies", "ClusterPolicy", plainStatus, "v1", "v2beta1"),
		of(policyGroup, "policies", "Policy", plainStatus, "v1", "v2beta1"),
		of(policyGroup, "policyexceptions", "PolicyException", noStatus, "v2", "v2beta1"),
		of(celGroup, "imagevalidatingpolicies", "ImageValidatingPolicy", conditionStatus, "v1", "v1beta1", "v1alpha1"),
		of(celGroup, "namespacedimagevalidatingpolicies", "NamespacedImageValidatingPolicy", conditionStatus, "v1", "v1beta1"),
		of(celGroup, "validatingpolicies", "ValidatingPolicy", conditionStatus, "v1", "v1beta1", "v1alpha1"),
		of(celGroup, "namespacedvalidatingpolicies", "NamespacedValidatingPolicy", conditionStatus, "v1", "v1beta1"),
		of(celGroup, "mutatingpolicies", "MutatingPolicy", conditionStatus, "v1", "v1beta1", "v1alpha1"),
		of(celGroup, "namespacedmutatingpolicies", "NamespacedMutatingPolicy", conditionStatus, "v1", "v1beta1"),
		of(celGroup, "policyexceptions", "PolicyException", noStatus, "v1", "v1beta1", "v1alpha1"),
		of(policyGroup, "cleanuppolicies", "CleanupPolicy", leftAlone, "v2", "v2beta1"),
		of(policyGroup, "clustercleanuppolicies", "ClusterCleanupPolicy", leftAlone, "v2", "v2beta1"),
		of(celGroup, "deletingpolicies", "DeletingPolicy", leftAlone, "v1", "v1beta1", "v1alpha1"),
		of(celGroup, "namespaceddeletingpolicies", "NamespacedDeletingPolicy", leftAlone, "v1", "v1beta1"),
		of(celGroup, "generatingpolicies", "GeneratingPolicy", leftAlone, "v1", "v1beta1", "v1alpha1"),
		of(celGroup, "namespacedgeneratingpolicies", "NamespacedGeneratingPolicy", leftAlone, "v1", "v1beta1"),
		of(sigstoreGroup, "clusterimagepolicies", "ClusterImagePolicy", plainStatus, "v1alpha1", "v1beta1"),
		of(sigstoreGroup, "trustroots", "TrustRoot", plainStatus, "v1alpha1"),
		of(ownGroup, "imageoverrides", "ImageOverride", ownStatus, "v1alpha1"),
	}
}

// documentKinds are the watched kinds. Loading waits for all of them except exceptions and kinds
// that are left alone, because more images would be admitted without them.
func documentKinds() []document.Kind {
	var list []document.Kind
	for _, k := range policyKinds() {
		k.Awaited = k.kind != "PolicyException" && k.status != leftAlone
		list = append(list, k.Kind)
	}
	return list
}

// documentResources are the same, global context entries and RegistryMirrors, for the endpoint
// that validates them.
func documentResources() []schema.GroupResource {
	list := []schema.GroupResource{{Group: ownGroup, Resource: mirrorResource}, {Group: policyGroup, Resource: globalResource}}
	for _, k := range policyKinds() {
		if k.status != leftAlone {
			list = append(list, schema.GroupResource{Group: k.Group, Resource: k.Resource})
		}
	}
	return list
}

// isPolicies reports whether a document is for the consumer of policies.
func isPolicies(key document.Key) bool {
	return ofResource(schema.GroupResource{Group: key.Group, Resource: key.Resource}).kind != ""
}

// ofResource is the kind of a resource; zero for a resource that is not for policies.
func ofResource(resource schema.GroupResource) policyKind {
	list := policyKinds()
	if i := slices.IndexFunc(list, func(k policyKind) bool { return k.Group == resource.Group && k.Resource == resource.Resource }); i >= 0 {
		return list[i]
	}
	return policyKind{}
}

// apiVersionOf is the API version of policies of a kind, for references to them.
func apiVersionOf(kind string) string {
	for _, k := range policyKinds() {
		if k.kind == kind {
			return k.Group + "/" + k.Versions[0]
		}
	}
	return ""
}
