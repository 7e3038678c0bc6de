package kyverno_test

import (
	"strings"
	"testing"
)

// TestCheckKinds: a rule for kinds without calls of webhooks is refused with the reason, in each kind
// of rules. With one thing changed it loads.
func TestCheckKinds(t *testing.T) {
	const (
		deny   = "validate: {failureAction: Enforce, deny: {}}"
		change = "mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}"
		images = "verifyImages: [{imageReferences: ['*'], required: false}]"
		makes  = "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {data: {a: b}}}"
		names  = "generate: {apiVersion: v1, kind: ConfigMap, name: a, namespace: b, data: {data: {a: '{{request.userInfo.username}}'}}}"
		alter  = "mutate: {targets: [{apiVersion: v1, kind: Secret, name: a, namespace: b}], patchStrategicMerge: {metadata: {labels: {a: b}}}}"
	)
	for _, row := range []struct {
		reason, kinds, does, spec string
		refused                   string
	}{
		{"a webhook configuration", "ValidatingWebhookConfiguration", deny, "", "a rule about ValidatingWebhookConfiguration could not hold: the API server calls no webhook"},
		{"next to a kind with webhooks", "Pod, MutatingWebhookConfiguration", deny, "", "MutatingWebhookConfiguration"},
		{"with group and version", "admissionregistration.k8s.io/v1/ValidatingAdmissionPolicy", deny, "", "ValidatingAdmissionPolicy"},
		{"every kind of the group", "admissionregistration.k8s.io/*/*", deny, "", "calls no webhook"},
		{"its twin of another group", "example.com/*/*", deny, "", ""},
		{"a review", "TokenReview", deny, "", "a rule about TokenReview could not hold"},
		{"a review of access", "authorization.k8s.io/v1/SubjectAccessReview", change, "", "SubjectAccessReview could not hold"},
		{"another group's kind of that name", "example.com/v1/TokenReview", deny, "", ""},
		{"a certificate request", "CertificateSigningRequest", deny, "", ""},
		{"its approval", "CertificateSigningRequest/approval", deny, "", ""},
		{"a lease", "Lease", deny, "", ""},
		{"a token of an account", "ServiceAccount/token", deny, "", ""},
		{"every subresource of an account", "ServiceAccount/*", deny, "", ""},
		{"every kind", "'*'", deny, "", ""},
		{"a pattern", "'*WebhookConfiguration'", deny, "", ""},
		{"a mutation", "MutatingWebhookConfiguration", change, "", "calls no webhook"},
		{"images", "TokenReview", images, "", "TokenReview could not hold"},
		{"a scan finds configurations", "ValidatingWebhookConfiguration", deny, "admission: false, ", ""},
		{"and no reviews", "TokenReview", deny, "admission: false, ", "TokenReview could not hold"},
		{"a trigger is watched", "ValidatingWebhookConfiguration", makes, "", ""},
		{"unless the rule reads the requester", "ValidatingWebhookConfiguration", names, "", "calls no webhook"},
		{"no review is watched", "TokenReview", makes, "", "TokenReview could not hold"},
		{"nor for existing objects", "LocalSubjectAccessReview", alter, "", "LocalSubjectAccessReview could not hold"},
	} {
		text := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {" + row.spec + "rules: [{name: r, match: {any: [{resources: {kinds: [" + row.kinds + "]}}]}, " + row.does + "}]}}"
		_, err := newCompiler(t, nil).Compile([]byte(text), "test")
		switch {
		case row.refused == "" && err != nil:
			t.Errorf("%s: %v", row.reason, err)
		case row.refused != "" && (err == nil || !strings.Contains(err.Error(), "spec.rules[0].match: ") || !strings.Contains(err.Error(), row.refused)):
			t.Errorf("%s: %v, want %s", row.reason, err, row.refused)
		}
	}
	excluded := "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: p}, spec: {rules: [{name: r, match: {any: [{resources: {kinds: ['*']}}]}, exclude: {any: [{resources: {kinds: [TokenReview]}}]}, " + deny + "}]}}"
	if _, err := newCompiler(t, nil).Compile([]byte(excluded), "test"); err != nil {
		t.Errorf("an exclusion takes nothing away: %v", err)
	}
}
