package suites_test

import (
	"fmt"
	"strings"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/suites"
	"github.com/quaymaster/quaymaster/workload"
)

// A suite's rows name the policies that the rules of a ClusterPolicy have become.
func ExampleConvert() {
	objects, err := workload.ReadDocuments(strings.NewReader(`{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: shop}, spec: {rules: [
  {name: no-node-port, match: {any: [{resources: {kinds: [Service]}}]}, validate: {pattern: {spec: {type: "!NodePort"}}}}]}}`), "/shop/policy.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	made, err := cel.Convert(objects, cel.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := suites.Convert([]byte("policies: [policy.yaml]\nresults:\n- {policy: shop, rule: no-node-port, kind: Service, resources: [open], result: fail}\n"),
		suites.Options{From: "/shop", To: "/cel", Policies: made.Policies, Files: map[string]string{"/shop/policy.yaml": "/cel/policy.yaml"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(result.Text))
	// Output:
	// policies: [policy.yaml]
	// results:
	//   - {policy: shop, isValidatingPolicy: true, kind: Service, resources: [open], result: fail}
}
