package gateway

import (
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// checkFailurePolicy refuses values that the API server does not support.
func (w Webhooks) checkFailurePolicy(found *complaints) {
	known := w.FailurePolicy == "" || w.FailurePolicy == string(admission.Fail) || w.FailurePolicy == string(admission.Ignore)
	found.refuse(!known, "webhooks.failurePolicy: %q: want Fail or Ignore, or leave it out for what policies say", w.FailurePolicy)
}

// unanswered returns the policies with the configured failure policy for the API server. The
// gateway's own decisions use the original ones.
func (w Webhooks) unanswered(policies []*policy.Policy) []*policy.Policy {
	if w.FailurePolicy == "" {
		return policies
	}
	told := make([]*policy.Policy, len(policies))
	for i, p := range policies {
		altered := *p
		altered.FailOpen = w.FailurePolicy == string(admission.Ignore)
		told[i] = &altered
	}
	return told
}

// unmirrored is the same for mirrors.
func (w Webhooks) unmirrored(mirrors configuration.Mirrors) configuration.Mirrors {
	if mirrors == configuration.MirrorsClosed && w.FailurePolicy == string(admission.Ignore) {
		return configuration.MirrorsOpen
	}
	return mirrors
}
