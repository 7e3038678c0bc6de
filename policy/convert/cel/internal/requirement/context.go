package requirement

import (
	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
)

// Entries writes a context as variables, and returns the scope in which their names are known. Namespaced says that
// the policy is one of a namespace.
func Entries(context []rulecontext.Document, scope jmespath.Scope, namespaced bool) ([]admission.Variable, jmespath.Scope, error) {
	w := writer{rule: Rule{Context: context, Namespaced: namespaced}, scope: scope}
	err := w.entries()
	return w.out.Variables, w.scope, err
}
