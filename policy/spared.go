package policy

import "strings"

// Spared reports whether a broken policy leaves a kind alone: without these a
// cluster could not be mended. A pattern for kinds is not one of them.
func Spared(group, kind string) bool {
	switch kind {
	case "Namespace", "Node":
		return group == "" || group == "*"
	case "Lease":
		return group == "coordination.k8s.io" || group == "*"
	case "Event":
		return group == "" || group == "events.k8s.io" || group == "*"
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
		return group == "admissionregistration.k8s.io" || group == "*"
	}
	return strings.HasSuffix(kind, "Review") && (strings.HasSuffix(group, ".k8s.io") || group == "*")
}
