package policyreport_test

import (
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// Two pods of a Deployment pass a rule, and one fails it: the report has a result for
// all of them, and one for the exception.
func Example() {
	web := report.Resource{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: "web", UID: "7d9c"}
	say := func(pod string, status result.Status) result.Result {
		return result.Result{
			Policy: result.Policy{Kind: "ClusterPolicy", Name: "require-labels"}, Rule: "team", Status: status,
			Resource: report.Resource{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: pod, UID: pod}, Time: time.Unix(1_773_480_413, 0),
		}
	}
	results := []result.Result{say("web-1", result.Pass), say("web-2", result.Pass), say("web-3", result.Fail)}
	at, _ := policyreport.ByWorkload.Place(results[0], web)
	made := policyreport.New(at, policyreport.Selection{})
	fmt.Println("changed:", made.Merge(results))

	parts, err := made.Encode(policyreport.PolicyReports, policyreport.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	stored := parts[0].JSON // what an API server keeps, and another replica reads
	read, err := policyreport.Decode(at, policyreport.Selection{}, [][]byte{stored})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("a pod more:", read.Merge([]result.Result{say("web-4", result.Pass)}))
	for _, listed := range read.Resources() {
		fmt.Println("listed:", listed.Kind, listed.Name)
	}
	// Output:
	// changed: true
	// a pod more: false
	// listed: Pod web-3
}
