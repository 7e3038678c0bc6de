// Package unsent lists the kinds for which the API server of Kubernetes 1.36 calls no webhook, or must
// call none, so that no rule can hold for them at admission.
package unsent

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

// Why returns why no rule can hold for a kind when an object is admitted: the API
// server calls no webhook for it, or a webhook would wait for itself. It is empty for all
// other kinds. Stored reports whether there are objects of the kind, which a scan finds.
// Group and kind may be patterns; a pattern for kinds counts only below a literal group.
func Why(group, kind string) (why string, stored bool) {
	for _, f := range groupsWithoutWebhook() {
		if group == f.group && !slices.Contains(f.sent, kind) || wildcard.Match(group, f.group) && slices.Contains(f.kinds, kind) {
			return f.why, f.stored
		}
	}
	return "", true
}

// groupWithoutWebhook is a group for which the API server calls no webhook.
type groupWithoutWebhook struct {
	group string
	kinds []string
	// sent are kinds of the group for which the API server calls webhooks.
	sent   []string
	why    string
	stored bool
}

func groupsWithoutWebhook() []groupWithoutWebhook {
	const loop = "a webhook that answers such a request sends some itself, and would wait for its own answer"
	return []groupWithoutWebhook{
		{group: "admissionregistration.k8s.io", kinds: []string{
			"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
			"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding",
		}, why: "the API server calls no webhook for objects that configure admission; restrict them by RBAC", stored: true},
		// A TokenRequest is the body of a request for the token of a ServiceAccount.
		{group: "authentication.k8s.io", kinds: []string{"TokenReview", "SelfSubjectReview"}, sent: []string{"TokenRequest"}, why: loop},
		{group: "authorization.k8s.io", kinds: []string{
			"SubjectAccessReview", "LocalSubjectAccessReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview",
		}, why: loop},
	}
}
