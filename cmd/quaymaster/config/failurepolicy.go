package config

import (
	admission "k8s.io/api/admissionregistration/v1"
)

// checkFailurePolicy refuses values that the API server does not support.
func (w Webhooks) checkFailurePolicy(found *complaints) {
	known := w.FailurePolicy == "" || w.FailurePolicy == string(admission.Fail) || w.FailurePolicy == string(admission.Ignore)
	found.refuse(!known, "webhooks.failurePolicy: %q: want Fail or Ignore, or leave it out for what policies say", w.FailurePolicy)
}
