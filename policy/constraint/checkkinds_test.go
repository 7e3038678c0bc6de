package constraint_test

import (
	"strings"
	"testing"
)

// TestCheckKinds: resources without calls of webhooks are refused in the rules that match, and
// nothing is refused in those that exclude.
func TestCheckKinds(t *testing.T) {
	of := func(groups, resources string) string {
		return strings.Replace(rules(resources, ""), "'*'", groups, 1)
	}
	for _, row := range []struct {
		reason, text   string
		atAdmission    string // the refused kind; empty: none
		otherwiseHolds bool
	}{
		{"a webhook configuration", of("admissionregistration.k8s.io", "validatingwebhookconfigurations"), "ValidatingWebhookConfiguration", true},
		{"in any group", of("'*'", "mutatingwebhookconfigurations"), "MutatingWebhookConfiguration", true},
		{"in a product of lists", of("'', admissionregistration.k8s.io", "pods, validatingadmissionpolicies"), "ValidatingAdmissionPolicy", true},
		{"everything in the group", of("admissionregistration.k8s.io", "'*'"), "*", true},
		{"a review", of("authentication.k8s.io", "tokenreviews"), "TokenReview", false},
		{"a review of access", of("'*'", "subjectaccessreviews"), "SubjectAccessReview", false},
		{"a certificate request and its approval", of("certificates.k8s.io", "certificatesigningrequests, certificatesigningrequests/approval"), "", true},
		{"everything", of("'*'", "'*'"), "", true},
		{"an exclusion", of("'*'", "'*'") + excluding(of("'*'", "tokenreviews")), "", true},
	} {
		c := compile(t, row.text)
		err := c.CheckKinds("spec.matchConstraints", true)
		if (err == nil) != (row.atAdmission == "") || err != nil && !strings.Contains(err.Error(), "spec.matchConstraints.resourceRules[0]: a rule about "+row.atAdmission+" ") {
			t.Errorf("%s: %v", row.reason, err)
		}
		if err := c.CheckKinds("spec.matchConstraints", false); (err == nil) != row.otherwiseHolds {
			t.Errorf("%s, which is not evaluated at admission: %v", row.reason, err)
		}
	}
}
