package native_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/native"
	"github.com/quaymaster/quaymaster/workload"
)

func Example() {
	documents, err := workload.Read(strings.NewReader(`
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: owners}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  validations: [{expression: "'owner' in object.metadata.?labels.orValue({})", message: has no owner}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: everywhere}
spec: {policyName: owners, validationActions: [Warn]}
`), "owners.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	joined, _, err := native.Join(documents)
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := json.Marshal(joined[0].Content())
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := native.New(native.Options{}).Compile(text, "owners.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	settings := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}}
	said := p.Validations[0].Validate(context.Background(), policy.Case{Subject: &policy.Subject{
		Object: policy.ContentOf(settings), Version: "v1", Kind: "ConfigMap", Operation: "CREATE",
	}})
	fmt.Println(p.Validations[0].Name(), said.Result, said.Action, said.Reasons[0].Message)
	// Output: everywhere fail Warn has no owner
}
