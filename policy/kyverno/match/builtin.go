package match

import (
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy/internal/field"
	"github.com/quaymaster/quaymaster/policy/wildcard"
)

// builtin is a kind of Kubernetes' own with its subresources.
type builtin struct{ group, kind, subresources string }

// builtins are the kinds by which a misspelt kind or subresource is found. The list need
// not be complete: any other kind may be a custom one.
func builtins() []builtin {
	const status, scaled, rbac, storage, policies = "status", "scale status", "rbac.authorization.k8s.io", "storage.k8s.io", "admissionregistration.k8s.io"
	return []builtin{
		{"", "Pod", "attach binding ephemeralcontainers eviction exec log portforward proxy resize status"},
		{"", "Namespace", "finalize status"},
		{"", "Node", "proxy status"},
		{"", "Service", "proxy status"},
		{"", "ServiceAccount", "token"},
		{"", "ReplicationController", scaled},
		{"", "PersistentVolume", status}, {"", "PersistentVolumeClaim", status}, {"", "ResourceQuota", status},
		{"", "ConfigMap", ""}, {"", "Secret", ""}, {"", "Endpoints", ""}, {"", "LimitRange", ""}, {"", "PodTemplate", ""},
		{"apps", "Deployment", scaled}, {"apps", "ReplicaSet", scaled}, {"apps", "StatefulSet", scaled},
		{"apps", "DaemonSet", status}, {"apps", "ControllerRevision", ""},
		{"batch", "Job", status}, {"batch", "CronJob", status},
		{"autoscaling", "HorizontalPodAutoscaler", status}, {"policy", "PodDisruptionBudget", status},
		{"certificates.k8s.io", "CertificateSigningRequest", "approval status"},
		{"networking.k8s.io", "Ingress", status}, {"networking.k8s.io", "IngressClass", ""}, {"networking.k8s.io", "NetworkPolicy", ""},
		{rbac, "Role", ""}, {rbac, "RoleBinding", ""}, {rbac, "ClusterRole", ""}, {rbac, "ClusterRoleBinding", ""},
		{storage, "StorageClass", ""}, {storage, "VolumeAttachment", status}, {storage, "CSIDriver", ""}, {storage, "CSINode", ""},
		{"scheduling.k8s.io", "PriorityClass", ""}, {"node.k8s.io", "RuntimeClass", ""}, {"discovery.k8s.io", "EndpointSlice", ""},
		{"apiextensions.k8s.io", "CustomResourceDefinition", status}, {"apiregistration.k8s.io", "APIService", status},
		{policies, "ValidatingWebhookConfiguration", ""}, {policies, "MutatingWebhookConfiguration", ""},
		{policies, "ValidatingAdmissionPolicy", status}, {policies, "ValidatingAdmissionPolicyBinding", ""},
	}
}

// isSubresource reports whether a kind of Kubernetes has a subresource of that name.
func isSubresource(name string) bool {
	return slices.ContainsFunc(builtins(), func(b builtin) bool { return slices.Contains(strings.Fields(b.subresources), name) })
}

// rightKind returns the spelling of a known kind that is written in another case
// or as the plural; empty for all other kinds, which may be custom ones.
func (s kindSelector) rightKind() string {
	kind := s.kind
	for _, known := range builtins() {
		if !wildcard.Match(s.group, known.group) {
			if s.group == "core" && known.group == "" && kind == known.kind {
				return "v1/" + kind
			}
			continue
		}
		plural := known.kind + "s"
		switch {
		case strings.HasSuffix(known.kind, "s"):
			plural = known.kind + "es"
		case strings.HasSuffix(known.kind, "y"):
			plural = strings.TrimSuffix(known.kind, "y") + "ies"
		}
		if kind != known.kind && (strings.EqualFold(kind, known.kind) || strings.EqualFold(kind, plural)) {
			return known.kind
		}
	}
	return ""
}

// checkSubresource refuses a subresource that a kind of Kubernetes does not have. A kind
// of the same name in a group that is written out may be a custom one.
func (s kindSelector) checkSubresource(path string) error {
	if s.subresource == "" {
		return nil
	}
	for _, b := range builtins() {
		if b.kind != s.kind || !wildcard.Match(s.group, b.group) {
			continue
		}
		if s.kind == podKind && s.subresource == "log" {
			return field.Fail(path, "%s/log is only read, and a read is not admitted: restrict it by RBAC", s.kind)
		}
		if b.subresources == "" {
			return field.Fail(path, "%s has no subresources, and %s/%s would match nothing; for a custom kind of that name write its group, as in GROUP/VERSION/%s", s.kind, s.kind, s.subresource, s.kind)
		}
		if !wildcard.Match(s.subresource, "") && !slices.ContainsFunc(strings.Fields(b.subresources), func(sub string) bool { return wildcard.Match(s.subresource, sub) }) {
			return field.Fail(path, "%s has no subresource %q, and would match nothing: it has %s", s.kind, s.subresource, strings.ReplaceAll(b.subresources, " ", ", "))
		}
	}
	return nil
}
