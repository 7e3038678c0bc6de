package kyvernocel

import (
	"errors"
	"fmt"
	"slices"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/internal/field"
)

// ImageOperations checks the operations of an image policy. At DELETE and CONNECT no image comes
// and nothing is evaluated, so they are refused where a validation may fail without an image, as
// it would in Kyverno.
func ImageOperations(match *admission.MatchResources, failsWithout bool) error {
	var errs []error
	brings := false
	for i, one := range match.ResourceRules {
		for n, operation := range one.Operations {
			brings = brings || slices.Contains([]admission.OperationType{admission.Create, admission.Update, admission.OperationAll}, operation)
			if failsWithout && slices.Contains([]admission.OperationType{admission.Delete, admission.Connect, admission.OperationAll}, operation) {
				errs = append(errs, field.Fail(fmt.Sprintf("spec.matchConstraints.resourceRules[%d].operations[%d]", i, n),
					"%s: an image policy is evaluated at CREATE and UPDATE alone, and a validation of this one may fail without an image: write these operations here, and a ValidatingPolicy for others", operation))
			}
		}
	}
	if !brings {
		errs = append(errs, field.Fail("spec.matchConstraints.resourceRules", "are about neither CREATE nor UPDATE, at which images come"))
	}
	return errors.Join(errs...)
}
