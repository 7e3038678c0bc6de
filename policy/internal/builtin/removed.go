package builtin

import "slices"

// IsRemoved reports whether Kubernetes once had a resource, and an API server of today has not: a
// policy that names it is not misspelt.
func IsRemoved(group, resource string) bool {
	switch group {
	case "extensions":
		return slices.Contains([]string{"daemonsets", "deployments", "ingresses", "networkpolicies", "podsecuritypolicies", "replicasets",
			"replicationcontrollers", "thirdpartyresources"}, resource)
	case "policy":
		return resource == "podsecuritypolicies"
	case "batch":
		return resource == "scheduledjobs"
	case "admissionregistration.k8s.io":
		return slices.Contains([]string{"initializerconfigurations", "externaladmissionhookconfigurations"}, resource)
	}
	return false
}
