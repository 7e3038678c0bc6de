package unsent_test

import (
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/policy/unsent"
)

func ExampleWhy() {
	why, stored := unsent.Why("admissionregistration.k8s.io", "ValidatingAdmissionPolicy")
	fmt.Println(stored, why)
	// Output: true the API server calls no webhook for objects that configure admission; restrict them by RBAC
}

func TestWhy(t *testing.T) {
	for _, row := range []struct {
		reason, group, kind string
		refused, stored     bool
	}{
		{"a configuration of webhooks", "admissionregistration.k8s.io", "ValidatingWebhookConfiguration", true, true},
		{"in any group", "*", "MutatingWebhookConfiguration", true, true},
		{"a policy of the API server's own", "*", "ValidatingAdmissionPolicy", true, true},
		{"every kind of the group", "admissionregistration.k8s.io", "*", true, true},
		{"a review of a token", "*", "TokenReview", true, false},
		{"of access", "authorization.k8s.io", "SubjectAccessReview", true, false},
		{"a kind of a later version", "authorization.k8s.io", "OtherReview", true, false},
		{"a request for a token, which is sent for its ServiceAccount", "authentication.k8s.io", "TokenRequest", false, true},
		{"another group's kind of that name", "example.com", "TokenReview", false, true},
		{"every kind", "*", "*", false, true},
		{"a pattern for kinds of any group", "*", "*Review", false, true},
		{"a kind of the core group", "", "Pod", false, true},
		{"a certificate request, which has webhooks", "certificates.k8s.io", "CertificateSigningRequest", false, true},
	} {
		if why, stored := unsent.Why(row.group, row.kind); (why != "") != row.refused || stored != row.stored {
			t.Errorf("%s: %q, stored %t", row.reason, why, stored)
		}
	}
}
