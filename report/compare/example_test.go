package compare_test

import (
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/report/compare"
)

// A result of one engine alone is listed, and is no agreement.
func ExampleCollector_Compare() {
	c := compare.New()
	err := c.Object([]byte(`{
		"apiVersion": "wgpolicyk8s.io/v1alpha2", "kind": "PolicyReport", "metadata": {"name": "r", "namespace": "shop"},
		"scope": {"apiVersion": "v1", "kind": "Pod", "namespace": "shop", "name": "web"},
		"results": [{"source": "kyverno", "policy": "signed", "rule": "by-us", "result": "fail", "message": "unverified image registry.example/web:1"}]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, d := range c.Compare(time.Now()).Differences {
		fmt.Println(d.Class, d.Kind, d.Name, d.Image, d.Policy, d.Theirs.Verdict)
	}
	// Output: only-there Pod web registry.example/web:1 ClusterPolicy/signed deny
}
