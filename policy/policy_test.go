package policy_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestPolicyIsEmpty: a rule of any kind makes it one of use.
func TestPolicyIsEmpty(t *testing.T) {
	for reason, c := range map[string]struct {
		policy policy.Policy
		want   bool
	}{
		"nothing":       {policy.Policy{Name: "p"}, true},
		"a rule":        {policy.Policy{Rules: make([]policy.Rule, 1)}, false},
		"a mutation":    {policy.Policy{ObjectRules: policy.ObjectRules{Mutations: make([]policy.Mutation, 1)}}, false},
		"a validation":  {policy.Policy{ObjectRules: policy.ObjectRules{Validations: make([]policy.Validation, 1)}}, false},
		"a generation":  {policy.Policy{ObjectRules: policy.ObjectRules{Generations: make([]policy.Generation, 1)}}, false},
		"an alteration": {policy.Policy{ObjectRules: policy.ObjectRules{Alterations: make([]policy.Alteration, 1)}}, false},
	} {
		if c.policy.IsEmpty() != c.want {
			t.Errorf("%s: empty: %t", reason, !c.want)
		}
	}
}

// TestSpared: what a cluster cannot be mended without, by its group and kind.
func TestSpared(t *testing.T) {
	for _, c := range []struct {
		group, kind string
		want        bool
	}{
		{"kyverno.io", "ClusterPolicy", true},
		{"quaymaster.dev", "ImageOverride", true},
		{"example.com", "ClusterPolicy", false},
		{"", "Namespace", true},
		{"*", "Namespace", true},
		{"example.com", "Namespace", false},
		{"", "Node", true},
		{"example.com", "Node", false},
		{"coordination.k8s.io", "Lease", true},
		{"*", "Lease", true},
		{"", "Lease", false},
		{"example.com", "Lease", false},
		{"", "Event", true},
		{"events.k8s.io", "Event", true},
		{"*", "Event", true},
		{"example.com", "Event", false},
		{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", true},
		{"*", "ValidatingWebhookConfiguration", true},
		{"", "ValidatingWebhookConfiguration", false},
		{"admissionregistration.k8s.io", "MutatingWebhookConfiguration", true},
		{"example.com", "MutatingWebhookConfiguration", false},
		{"authentication.k8s.io", "TokenReview", true},
		{"authorization.k8s.io", "SubjectAccessReview", true},
		{"*", "TokenReview", true},
		{"example.com", "TokenReview", false},
		{"", "TokenReview", false},
		{"authentication.k8s.io", "Token", false},
		{"*", "Pod", false},
		{"", "Pod", false},
		{"", "*", false},
		{"*", "*", false},
	} {
		if got := policy.IsExemptKind(c.group, c.kind); got != c.want {
			t.Errorf("%s of group %q: exempt: %t", c.kind, c.group, got)
		}
	}
}
