package native_test

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/native"
	"github.com/quaymaster/quaymaster/workload"
)

func Example() {
	objects, err := workload.Read(strings.NewReader(`
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: owners}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations:
  - expression: "'owner' in object.metadata.?labels.orValue({})"
`), "owners.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	policies, problems, err := native.Convert(objects, native.Options{Exempt: []string{"kube-system"}})
	if err != nil || len(problems) > 0 {
		fmt.Println(problems, err)
		return
	}
	made := policies[0].Validating
	fmt.Println(made.Policy.Kind, made.Policy.Name, made.Binding.Spec.ValidationActions, made.Binding.Spec.MatchResources.NamespaceSelector.MatchExpressions[0].Values)
	// Output: ValidatingAdmissionPolicy owners [Deny] [kube-system]
}
