package configuration

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Deviations returns, for a policy's condition, a sentence for each kind that the policy names if
// its webhook differs from the policy's own setting.
func Deviations(p *policy.Policy) []string {
	var list []string
	state := func(targets []policy.Target) {
		for _, t := range targets {
			if sentence := deviationOf(p, t); sentence != "" && !slices.Contains(list, sentence) {
				list = append(list, sentence)
			}
		}
	}
	for _, m := range p.Mutations {
		state(m.Targets())
	}
	for _, v := range p.Validations {
		state(v.Targets())
	}
	return list
}

func deviationOf(p *policy.Policy, t policy.Target) string {
	if isPattern(t.Kind) || t.Unserved {
		return ""
	}
	closes := !p.FailOpen && !p.AuditOnly
	switch attentionOf(t) {
	case ifNamedOpen:
		if closes {
			return fmt.Sprintf("a request for %s without an answer is admitted (failurePolicy Ignore)", written(t))
		}
	case ifNamedDocument:
		return fmt.Sprintf("requests for %s by the gateway itself are excluded, and one without an answer is admitted (failurePolicy Ignore)", written(t))
	case ifNamedRecord:
		return fmt.Sprintf("a request for %s without an answer is admitted (failurePolicy Ignore); requests in the gateway's namespace, in %s, and by the gateway itself are excluded",
			written(t), recordNamespaces())
	case never:
		return fmt.Sprintf("the API server never sends %s to the gateway: %s", written(t), ownDocs)
	}
	return ""
}

// attentionOf returns the strictest limits of the kind in the groups that a target may match. A
// kind without a group is the built-in one, if it exists.
func attentionOf(t policy.Target) attention {
	if !isPattern(t.Group) {
		when, _ := Resource{Group: t.Group, Kind: t.Kind}.attention()
		return when
	}
	least := always
	for _, r := range exceptional() {
		if r.Kind == t.Kind && wildcard.Match(t.Group, r.Group) {
			when, _ := r.attention()
			least = max(least, when)
		}
	}
	return least
}

// exceptional are the kinds with special limits that a policy may name without their group.
func exceptional() []Resource {
	var list []Resource
	for group, kinds := range map[string][]string{
		"":                       {"Node", "Binding", "Event"},
		"apiextensions.k8s.io":   {"CustomResourceDefinition"},
		"apiregistration.k8s.io": {"APIService"},
		"certificates.k8s.io":    {"CertificateSigningRequest", "ClusterTrustBundle", "PodCertificateRequest"},
		"coordination.k8s.io":    {"Lease", "LeaseCandidate"},
		"events.k8s.io":          {"Event"},
		"kyverno.io":             {"ClusterPolicy", "PolicyException", "CleanupPolicy", "ClusterCleanupPolicy", "GlobalContextEntry", "UpdateRequest"},
		"policies.kyverno.io": {
			"ValidatingPolicy", "NamespacedValidatingPolicy", "MutatingPolicy", "NamespacedMutatingPolicy", "ImageValidatingPolicy", "NamespacedImageValidatingPolicy",
			"GeneratingPolicy", "NamespacedGeneratingPolicy", "DeletingPolicy", "NamespacedDeletingPolicy",
		},
		"policy.sigstore.dev": {"ClusterImagePolicy", "TrustRoot"},
		"quaymaster.dev":      {"RegistryMirror", "ImageOverride"},
		"wgpolicyk8s.io":      {"PolicyReport", "ClusterPolicyReport"},
	} {
		for _, kind := range kinds {
			list = append(list, Resource{Group: group, Kind: kind})
		}
	}
	return list
}
