package fitness_test

import (
	"fmt"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/gateway/native/fitness"
)

func ExampleValidating() {
	failure := admission.Ignore
	fmt.Println(fitness.Validating(&admission.ValidatingAdmissionPolicySpec{FailurePolicy: &failure, MatchConstraints: &admission.MatchResources{}}))
	failure = admission.Fail
	fmt.Println(fitness.Validating(&admission.ValidatingAdmissionPolicySpec{FailurePolicy: &failure, MatchConstraints: &admission.MatchResources{}}))
	// Output:
	// failurePolicy Ignore: an API server admits an object that makes an expression fail, which the webhook denies
	// <nil>
}
