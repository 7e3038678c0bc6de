package findings_test

import (
	"fmt"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/scan/findings"
)

// The findings for the pods of one workload are one finding.
func ExampleFindings() {
	found := findings.New(false)
	for _, name := range []string{"web-1", "web-2"} {
		found.Take(report.Decided{
			Outcome: gate.Outcome{Result: gate.Error, Reasons: []policy.Reason{{Code: "timeout", Message: "the registry did not respond"}}},
			About:   report.Resource{Kind: "Pod", Namespace: "shop", Name: name, Owner: &report.Owner{Kind: "ReplicaSet", Name: "web"}},
		})
	}
	for _, finding := range found.Sorted() {
		fmt.Println(finding.Result, finding.Namespace, finding.Kind, finding.Name, finding.Objects, finding.Message)
	}
	// Output: error shop ReplicaSet web 2 the registry did not respond
}
