package kyvernocel

import (
	"errors"
	"fmt"
	"time"

	policieskyvernoio "github.com/kyverno/api/api/policies.kyverno.io"
	"github.com/kyverno/api/api/policies.kyverno.io/v1alpha1"
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// Settings are the fields of that name that every policy has.
type Settings struct {
	FailurePolicy *admission.FailurePolicyType
	Webhook       *v1alpha1.WebhookConfiguration
	Mode          v1alpha1.EvaluationMode
	// Unscanned: existing objects are not scanned.
	Unscanned bool
}

// Apply notes the settings in a policy, and reports whether it is about documents that
// are no Kubernetes objects.
func (s Settings) Apply(out *policy.Policy) (isJSON bool, err error) {
	var errs []error
	if f := s.FailurePolicy; f != nil && *f != "" {
		switch *f {
		case admission.Fail:
		case admission.Ignore:
			out.FailOpen = true
		default:
			errs = append(errs, field.Fail("spec.failurePolicy", "unknown value %q: want Fail or Ignore", *f))
		}
	}
	if w := s.Webhook; w != nil && w.TimeoutSeconds != nil {
		if *w.TimeoutSeconds < minTimeout || *w.TimeoutSeconds > maxTimeout {
			errs = append(errs, field.Fail("spec.webhookConfiguration.timeoutSeconds", "want %d to %d seconds, found %d", minTimeout, maxTimeout, *w.TimeoutSeconds))
		}
		out.Timeout = time.Duration(*w.TimeoutSeconds) * time.Second
	}
	if s.Unscanned {
		out.Unscanned = "spec.evaluation.background.enabled is false"
	}
	switch s.Mode {
	case policieskyvernoio.EvaluationModeKubernetes:
	case policieskyvernoio.EvaluationModeJSON:
		isJSON = true
	default:
		errs = append(errs, field.Fail("spec.evaluation.mode", "unknown value %q: want Kubernetes or JSON", s.Mode))
	}
	return isJSON, errors.Join(errs...)
}

// CheckEvaluated refuses a policy that nothing evaluates, and records whether scans alone evaluate
// it. A quiet policy is not evaluated at admission; a JSON policy is evaluated only for documents that
// are no Kubernetes objects.
func CheckEvaluated(out *policy.Policy, quiet, isJSON bool) error {
	out.OnlyScanned = quiet && !isJSON
	switch {
	case isJSON && out.Namespace != "":
		return field.Fail("spec.evaluation.mode",
			"JSON is for documents that are in no namespace, and a policy of a namespace would match none of them: write a policy of the cluster")
	case !isJSON && quiet && out.Unscanned != "":
		return field.Fail("spec.evaluation.admission.enabled", "is false, and scans leave the policy out, so that it would never be evaluated: %s", out.Unscanned)
	}
	return nil
}

// ActionOf returns the effect of a failure: the strictest of validationActions, and denying if
// there are none.
func ActionOf(actions []admission.ValidationAction) (policy.Action, error) {
	found := policy.Action("")
	for i, named := range actions {
		switch named {
		case admission.Deny:
			found = policy.Enforce
		case admission.Warn:
			if found != policy.Enforce {
				found = policy.Warn
			}
		case admission.Audit:
			if found == "" {
				found = policy.Audit
			}
		default:
			return "", field.Fail(fmt.Sprintf("spec.validationActions[%d]", i), "unknown action %q: want Deny, Audit or Warn", named)
		}
	}
	if found == "" {
		found = policy.Enforce
	}
	return found, nil
}

// AskedAtAdmission reports whether the subject has a requester: an admission request has one,
// files and scans of existing objects have none.
func AskedAtAdmission(s *policy.Subject) bool {
	return s.Bare || s.User.Name != "" || len(s.User.Groups) > 0
}
