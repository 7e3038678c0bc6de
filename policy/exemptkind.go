package policy

import (
	"slices"
	"strings"
)

// IsDocument reports whether a group has the kinds that configure the gateway and engines of its
// kind: policies, exceptions, mirrors and what rules look up.
func IsDocument(group string) bool {
	return slices.Contains([]string{"kyverno.io", "policies.kyverno.io", "policy.sigstore.dev", "quaymaster.dev"}, group)
}

// IsExemptKind reports whether a broken policy does not apply to a kind: without these kinds, neither
// the cluster nor the policy could be repaired. A pattern for kinds is never exempt.
func IsExemptKind(group, kind string) bool {
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
	return IsDocument(group) || strings.HasSuffix(kind, "Review") && (strings.HasSuffix(group, ".k8s.io") || group == "*")
}
