// Package builtin lists the resources of Kubernetes itself with their subresources, and the
// operations that requests for them may have. A selector that matches none of these by its text
// is refused when its policy is loaded.
package builtin

import (
	"slices"
	"strings"
)

// Resource is a kind of object by the name that the API server has for it.
type Resource struct {
	// Name is the plural, lower-case name, as in deployments.
	Name string
	// Group is empty for the core group.
	Group, Kind string
	// Cluster: its objects are in no namespace.
	Cluster bool
}

// IsNamespaced reports whether a kind is one of Kubernetes whose objects are in namespaces. The group
// may be *; then kinds of other groups are not.
func IsNamespaced(group, kind string) bool {
	found := false
	for _, r := range Resources() {
		if r.Kind != kind || group != "*" && r.Group != group {
			continue
		}
		if r.Cluster {
			return false
		}
		found = true
	}
	return found && (group != "*" || !IsNamedAlike(kind))
}

// Resources returns the resources of Kubernetes itself (1.37), which are in any cluster; those
// that run images come first.
func Resources() []Resource {
	return slices.Concat(workloads(), core(), groups(), configuration(), reviews())
}

func workloads() []Resource {
	return []Resource{
		{Name: "pods", Kind: "Pod"},
		{Name: "podtemplates", Kind: "PodTemplate"},
		{Name: "replicationcontrollers", Kind: "ReplicationController"},
		{Name: "deployments", Group: "apps", Kind: "Deployment"},
		{Name: "statefulsets", Group: "apps", Kind: "StatefulSet"},
		{Name: "daemonsets", Group: "apps", Kind: "DaemonSet"},
		{Name: "replicasets", Group: "apps", Kind: "ReplicaSet"},
		{Name: "jobs", Group: "batch", Kind: "Job"},
		{Name: "cronjobs", Group: "batch", Kind: "CronJob"},
	}
}

func core() []Resource {
	return []Resource{
		{Name: "configmaps", Kind: "ConfigMap"},
		{Name: "secrets", Kind: "Secret"},
		{Name: "services", Kind: "Service"},
		{Name: "serviceaccounts", Kind: "ServiceAccount"},
		{Name: "endpoints", Kind: "Endpoints"},
		{Name: "events", Kind: "Event"},
		{Name: "limitranges", Kind: "LimitRange"},
		{Name: "persistentvolumeclaims", Kind: "PersistentVolumeClaim"},
		{Name: "resourcequotas", Kind: "ResourceQuota"},
		{Name: "bindings", Kind: "Binding"},
		{Name: "namespaces", Kind: "Namespace", Cluster: true},
		{Name: "nodes", Kind: "Node", Cluster: true},
		{Name: "persistentvolumes", Kind: "PersistentVolume", Cluster: true},
		{Name: "componentstatuses", Kind: "ComponentStatus", Cluster: true},
	}
}

func groups() []Resource {
	const (
		networking = "networking.k8s.io"
		rbac       = "rbac.authorization.k8s.io"
		storage    = "storage.k8s.io"
		devices    = "resource.k8s.io"
	)
	return []Resource{
		{Name: "controllerrevisions", Group: "apps", Kind: "ControllerRevision"},
		{Name: "horizontalpodautoscalers", Group: "autoscaling", Kind: "HorizontalPodAutoscaler"},
		{Name: "events", Group: "events.k8s.io", Kind: "Event"},
		{Name: "endpointslices", Group: "discovery.k8s.io", Kind: "EndpointSlice"},
		{Name: "leases", Group: "coordination.k8s.io", Kind: "Lease"},
		{Name: "ingresses", Group: networking, Kind: "Ingress"},
		{Name: "networkpolicies", Group: networking, Kind: "NetworkPolicy"},
		{Name: "ingressclasses", Group: networking, Kind: "IngressClass", Cluster: true},
		{Name: "ipaddresses", Group: networking, Kind: "IPAddress", Cluster: true},
		{Name: "servicecidrs", Group: networking, Kind: "ServiceCIDR", Cluster: true},
		{Name: "poddisruptionbudgets", Group: "policy", Kind: "PodDisruptionBudget"},
		{Name: "roles", Group: rbac, Kind: "Role"},
		{Name: "rolebindings", Group: rbac, Kind: "RoleBinding"},
		{Name: "clusterroles", Group: rbac, Kind: "ClusterRole", Cluster: true},
		{Name: "clusterrolebindings", Group: rbac, Kind: "ClusterRoleBinding", Cluster: true},
		{Name: "priorityclasses", Group: "scheduling.k8s.io", Kind: "PriorityClass", Cluster: true},
		{Name: "runtimeclasses", Group: "node.k8s.io", Kind: "RuntimeClass", Cluster: true},
		{Name: "storageclasses", Group: storage, Kind: "StorageClass", Cluster: true},
		{Name: "volumeattachments", Group: storage, Kind: "VolumeAttachment", Cluster: true},
		{Name: "volumeattributesclasses", Group: storage, Kind: "VolumeAttributesClass", Cluster: true},
		{Name: "csidrivers", Group: storage, Kind: "CSIDriver", Cluster: true},
		{Name: "csinodes", Group: storage, Kind: "CSINode", Cluster: true},
		{Name: "csistoragecapacities", Group: storage, Kind: "CSIStorageCapacity"},
		{Name: "resourceclaims", Group: devices, Kind: "ResourceClaim"},
		{Name: "resourceclaimtemplates", Group: devices, Kind: "ResourceClaimTemplate"},
		{Name: "deviceclasses", Group: devices, Kind: "DeviceClass", Cluster: true},
		{Name: "resourceslices", Group: devices, Kind: "ResourceSlice", Cluster: true},
		{Name: "devicetaintrules", Group: devices, Kind: "DeviceTaintRule", Cluster: true},
	}
}

// configuration are the resources that configure the API server.
func configuration() []Resource {
	const (
		flow      = "flowcontrol.apiserver.k8s.io"
		admission = "admissionregistration.k8s.io"
		keys      = "certificates.k8s.io"
	)
	return []Resource{
		{Name: "certificatesigningrequests", Group: keys, Kind: "CertificateSigningRequest", Cluster: true},
		{Name: "clustertrustbundles", Group: keys, Kind: "ClusterTrustBundle", Cluster: true},
		{Name: "podcertificaterequests", Group: keys, Kind: "PodCertificateRequest"},
		{Name: "storageversionmigrations", Group: "storagemigration.k8s.io", Kind: "StorageVersionMigration", Cluster: true},
		{Name: "customresourcedefinitions", Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Cluster: true},
		{Name: "apiservices", Group: "apiregistration.k8s.io", Kind: "APIService", Cluster: true},
		{Name: "flowschemas", Group: flow, Kind: "FlowSchema", Cluster: true},
		{Name: "prioritylevelconfigurations", Group: flow, Kind: "PriorityLevelConfiguration", Cluster: true},
		{Name: "mutatingwebhookconfigurations", Group: admission, Kind: "MutatingWebhookConfiguration", Cluster: true},
		{Name: "validatingwebhookconfigurations", Group: admission, Kind: "ValidatingWebhookConfiguration", Cluster: true},
		{Name: "validatingadmissionpolicies", Group: admission, Kind: "ValidatingAdmissionPolicy", Cluster: true},
		{Name: "validatingadmissionpolicybindings", Group: admission, Kind: "ValidatingAdmissionPolicyBinding", Cluster: true},
		{Name: "mutatingadmissionpolicies", Group: admission, Kind: "MutatingAdmissionPolicy", Cluster: true},
		{Name: "mutatingadmissionpolicybindings", Group: admission, Kind: "MutatingAdmissionPolicyBinding", Cluster: true},
	}
}

func reviews() []Resource {
	const authentication, authorization = "authentication.k8s.io", "authorization.k8s.io"
	return []Resource{
		{Name: "tokenreviews", Group: authentication, Kind: "TokenReview", Cluster: true},
		{Name: "selfsubjectreviews", Group: authentication, Kind: "SelfSubjectReview", Cluster: true},
		{Name: "subjectaccessreviews", Group: authorization, Kind: "SubjectAccessReview", Cluster: true},
		{Name: "selfsubjectaccessreviews", Group: authorization, Kind: "SelfSubjectAccessReview", Cluster: true},
		{Name: "selfsubjectrulesreviews", Group: authorization, Kind: "SelfSubjectRulesReview", Cluster: true},
		{Name: "localsubjectaccessreviews", Group: authorization, Kind: "LocalSubjectAccessReview"},
	}
}

// Find returns the resource of a kind.
func Find(group, kind string) (r Resource, ok bool) {
	for _, list := range []func() []Resource{workloads, core, groups, configuration, reviews} {
		for _, r := range list() {
			if r.Group == group && r.Kind == kind {
				return r, true
			}
		}
	}
	return Resource{}, false
}

// IsNamedAlike reports whether a widely used API of another group has a kind of this name or
// spelling with another scope or other subresources: the IPAddress of Cluster API is in namespaces.
func IsNamedAlike(kind string) bool { return strings.EqualFold(kind, "IPAddress") }
