package kinds

import (
	"slices"
	"strings"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/internal/spelling"
	"github.com/quaymaster/quaymaster/policy"
)

// Kind is a custom resource for policies, or for their dependencies.
type Kind struct {
	document.Kind
	// Name is the kind in documents.
	Name string
	// Status is the location of the status.
	Status StatusForm
}

// StatusForm is the location of a kind's conditions.
type StatusForm int

// The forms.
const (
	NoStatus        StatusForm = iota // it has none, or the gateway does not write it
	plainStatus                       // status.conditions
	ConditionStatus                   // status.conditionStatus, next to ready
	OwnStatus                         // status.conditions, of the gateway's own kinds
)

// NeverWrite is the remedy where a status of another engine's kinds may not be written.
const NeverWrite = "set policies.writeStatus: never"

// The groups of policies.
const (
	KyvernoGroup  = "kyverno.io"
	CELGroup      = "policies.kyverno.io"
	SigstoreGroup = "policy.sigstore.dev"
	OwnGroup      = "quaymaster.dev"
)

// Policies are all of them, with the supported versions, the preferred one first. For a
// ClusterImagePolicy that is the stored version: the conversion to the other is part of
// policy-controller and is deleted with it.
func Policies() []Kind {
	of := func(group, resource, kind string, status StatusForm, versions ...string) Kind {
		return Kind{Kind: document.Kind{Group: group, Resource: resource, Versions: versions}, Name: kind, Status: status}
	}
	return []Kind{
		of(KyvernoGroup, "clusterpolicies", "ClusterPolicy", plainStatus, "v1", "v2beta1"),
		of(KyvernoGroup, "policies", "Policy", plainStatus, "v1", "v2beta1"),
		of(KyvernoGroup, "policyexceptions", "PolicyException", NoStatus, "v2", "v2beta1"),
		of(CELGroup, "imagevalidatingpolicies", "ImageValidatingPolicy", ConditionStatus, "v1", "v1beta1", "v1alpha1"),
		of(CELGroup, "namespacedimagevalidatingpolicies", "NamespacedImageValidatingPolicy", ConditionStatus, "v1", "v1beta1"),
		of(CELGroup, "validatingpolicies", "ValidatingPolicy", ConditionStatus, "v1", "v1beta1", "v1alpha1"),
		of(CELGroup, "namespacedvalidatingpolicies", "NamespacedValidatingPolicy", ConditionStatus, "v1", "v1beta1"),
		of(CELGroup, "mutatingpolicies", "MutatingPolicy", ConditionStatus, "v1", "v1beta1", "v1alpha1"),
		of(CELGroup, "namespacedmutatingpolicies", "NamespacedMutatingPolicy", ConditionStatus, "v1", "v1beta1"),
		of(CELGroup, "policyexceptions", "PolicyException", NoStatus, "v1", "v1beta1", "v1alpha1"),
		of(KyvernoGroup, "cleanuppolicies", "CleanupPolicy", plainStatus, "v2", "v2beta1"),
		of(KyvernoGroup, "clustercleanuppolicies", "ClusterCleanupPolicy", plainStatus, "v2", "v2beta1"),
		of(CELGroup, "deletingpolicies", "DeletingPolicy", ConditionStatus, "v1", "v1beta1", "v1alpha1"),
		of(CELGroup, "namespaceddeletingpolicies", "NamespacedDeletingPolicy", ConditionStatus, "v1", "v1beta1"),
		of(CELGroup, "generatingpolicies", "GeneratingPolicy", ConditionStatus, "v1", "v1beta1", "v1alpha1"),
		of(CELGroup, "namespacedgeneratingpolicies", "NamespacedGeneratingPolicy", ConditionStatus, "v1", "v1beta1"),
		of(SigstoreGroup, "clusterimagepolicies", "ClusterImagePolicy", plainStatus, "v1alpha1", "v1beta1"),
		of(SigstoreGroup, "trustroots", "TrustRoot", plainStatus, "v1alpha1"),
		of(OwnGroup, "imageoverrides", "ImageOverride", OwnStatus, "v1alpha1"),
	}
}

// Watched are the watched kinds. Loading waits for all of them except exceptions and policies that
// delete, because more images would be admitted without them.
func Watched() []document.Kind {
	var list []document.Kind
	for _, k := range Policies() {
		k.Awaited = k.Name != "PolicyException" && !deletes(k.Name)
		list = append(list, k.Kind)
	}
	return list
}

// deletes reports whether policies of a kind delete objects on a schedule, and nothing else.
func deletes(kind string) bool {
	return slices.Contains([]string{"CleanupPolicy", "ClusterCleanupPolicy", "DeletingPolicy", "NamespacedDeletingPolicy"}, kind)
}

// Validated are the same, global context entries and RegistryMirrors, for the endpoint
// that validates them.
func Validated() []schema.GroupResource {
	list := []schema.GroupResource{{Group: OwnGroup, Resource: MirrorResource}, {Group: KyvernoGroup, Resource: GlobalContextResource}}
	for _, k := range Policies() {
		list = append(list, schema.GroupResource{Group: k.Group, Resource: k.Resource})
	}
	return list
}

// IsLeftAlone reports whether a document that the catalog does not recognise may be ignored: it is
// of another group, or of a kind that is read elsewhere. Any other
// document of the groups of policies, or of a misspelt one, has a wrong kind or version, and would
// protect nothing.
func IsLeftAlone(apiVersion, kind string) bool {
	group, _, _ := strings.Cut(strings.ToLower(apiVersion), "/")
	switch {
	case !policy.IsDocument(group):
		return spelling.Nearest(group, []string{KyvernoGroup, CELGroup, SigstoreGroup, OwnGroup}) == ""
	}
	return group == KyvernoGroup && kind == "GlobalContextEntry" || group == OwnGroup && (kind == "RegistryMirror" || kind == "Configuration")
}

// IsUnread reports whether nothing reads a document of a folder that is no policy, so that it has no
// effect there, such as a ValidatingAdmissionPolicy, which an API server evaluates, or a RegistryMirror, which is read from the files of mirrors.
func IsUnread(apiVersion, kind string) bool {
	return apiVersion != "v1" || !slices.Contains([]string{"ConfigMap", "Secret", "Namespace"}, kind)
}

// IsPolicy reports whether a document is for the consumer of policies.
func IsPolicy(key document.Key) bool {
	return OfResource(schema.GroupResource{Group: key.Group, Resource: key.Resource}).Name != ""
}

// OfResource is the kind of a resource; zero for a resource that is not for policies.
func OfResource(resource schema.GroupResource) Kind {
	list := Policies()
	if i := slices.IndexFunc(list, func(k Kind) bool { return k.Group == resource.Group && k.Resource == resource.Resource }); i >= 0 {
		return list[i]
	}
	return Kind{}
}

// APIVersionOf is the API version of policies of a kind, for references to them.
func APIVersionOf(kind string) string {
	for _, k := range Policies() {
		if k.Name == kind {
			return k.Group + "/" + k.Versions[0]
		}
	}
	return ""
}

// FromCluster begins the keys of the cluster's documents in the catalog. It sorts after those of
// folders.
const FromCluster = "in-cluster"

// ClusterKey separates the cluster's documents from a folder's. Of two for the same name, the
// folder's has precedence: it is the operator's, and a user with write access to Policies in the
// cluster must not disable it.
func ClusterKey(key document.Key) string { return FromCluster + "/" + key.String() }

// GlobalContextResource is the resource of GlobalContextEntries.
const GlobalContextResource = "globalcontextentries"

// GlobalContext is the watched kind of GlobalContextEntries.
func GlobalContext() document.Kind {
	return document.Kind{Group: KyvernoGroup, Resource: GlobalContextResource, Versions: []string{"v2", "v2beta1", "v2alpha1"}}
}

// IsGlobalContext reports whether a document is a GlobalContextEntry.
func IsGlobalContext(key document.Key) bool {
	return key.Group == KyvernoGroup && key.Resource == GlobalContextResource
}

// IsGlobalContextEntry reports whether a document claims to be a GlobalContextEntry, of any version.
func IsGlobalContextEntry(raw []byte) bool {
	group, kind := headOf(raw)
	return group == KyvernoGroup && kind == "GlobalContextEntry"
}

// Reference names a policy in events.
func Reference(p *policy.Policy) core.ObjectReference {
	return core.ObjectReference{APIVersion: APIVersionOf(p.Kind), Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
}

// ReferenceOf is the same of a policy's ID; zero for a text that is none.
func ReferenceOf(id string) core.ObjectReference {
	kind, name, _ := strings.Cut(id, "/")
	namespace, own, namespaced := strings.Cut(name, "/")
	if !namespaced {
		namespace, own = "", name
	}
	if APIVersionOf(kind) == "" {
		return core.ObjectReference{}
	}
	return Reference(&policy.Policy{Kind: kind, Namespace: namespace, Name: own})
}
