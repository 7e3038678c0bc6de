package builtin

import "strings"

// MayHaveVersion reports whether a release of Kubernetes may serve the resource in a version, or in
// one that a pattern matches. The core group has v1 alone; of the other groups autoscaling has v2,
// too. Which alpha and beta versions these had is not known here.
func (r Resource) MayHaveVersion(version string) bool {
	if strings.ContainsAny(version, "*?") {
		return true
	}
	isStable := !strings.Contains(version, "alpha") && !strings.Contains(version, "beta")
	return version == "v1" || r.Group == "autoscaling" && version == "v2" || r.Group != "" && !isStable
}

// VersionsOf returns the versions in which Kubernetes 1.30 to 1.37 serves a built-in kind; for an
// unlisted kind, those of its group. False means that the group is not Kubernetes' own.
func VersionsOf(group, kind string) (versions []string, known bool) {
	switch kind {
	case "Ingress", "NetworkPolicy", "Lease", "CertificateSigningRequest", "StorageClass", "VolumeAttachment", "CSIDriver", "CSINode",
		"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "TokenReview", "TokenRequest", "PriorityClass":
		_, known = VersionsOf(group, "")
		return []string{"v1"}, known
	}
	switch group {
	case "", "apps", "batch", "policy", "rbac.authorization.k8s.io", "node.k8s.io", "discovery.k8s.io", "events.k8s.io",
		"apiextensions.k8s.io", "apiregistration.k8s.io", "authorization.k8s.io":
		return []string{"v1"}, true
	case "autoscaling":
		return []string{"v1", "v2"}, true
	case "extensions":
		return nil, true
	case "flowcontrol.apiserver.k8s.io":
		return []string{"v1", "v1beta3"}, true
	case "scheduling.k8s.io":
		return []string{"v1", "v1beta1", "v1alpha3", "v1alpha2", "v1alpha1"}, true
	case "networking.k8s.io":
		return []string{"v1", "v1beta1"}, true
	}
	return nil, false
}
