package validating_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
)

func Example() {
	p, err := validating.New(kyvernocel.Options{}).Compile([]byte(`
apiVersion: policies.kyverno.io/v1
kind: ValidatingPolicy
metadata: {name: owners}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations:
  - expression: "'owner' in object.metadata.?labels.orValue({})"
    messageExpression: "object.metadata.name + ' has no owner'"
`), "owners.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	settings := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}}
	said := p.Validations[0].Validate(context.Background(), policy.Case{Subject: &policy.Subject{
		Object: policy.ContentOf(settings), Version: "v1", Kind: "ConfigMap", Operation: "CREATE",
	}})
	fmt.Println(said.Result, said.Action, said.Reasons[0].Message)
	// Output: fail Enforce settings has no owner
}
