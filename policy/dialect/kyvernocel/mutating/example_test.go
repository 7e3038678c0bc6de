package mutating_test

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
)

func Example() {
	p, err := mutating.New(kyvernocel.Options{}).Compile([]byte(`
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: owners}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: "Object{metadata: Object.metadata{labels: {'owner': string(request.userInfo.username)}}}"
`), "owners.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	settings := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "settings"}}
	said := p.Mutations[0].Mutate(context.Background(), policy.Case{Subject: &policy.Subject{
		Object: policy.ContentOf(settings), Version: "v1", Kind: "ConfigMap", Operation: "CREATE", User: policy.User{Name: "ann"},
	}})
	fmt.Println(said.Result, said.Object["metadata"])
	// Output: pass map[labels:map[owner:ann] name:settings]
}
