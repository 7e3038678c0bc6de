package config

import (
	"slices"

	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/result"
)

// Reports is the set of reports in the cluster about its objects. Their definitions belong to
// other projects and are installed separately; without them, nothing is written.
type Reports struct {
	// APIs in which reports are written: policyreport (wgpolicyk8s.io/v1alpha2) and openreports
	// (openreports.io/v1alpha1). Default policyreport; an empty list writes none, and the
	// decision log and the dashboard contain the same results.
	APIs *[]string `json:"apis,omitempty"`
	// Subject of one report: workload (the owner of pods; differences between its pods are
	// listed), resource, policy (in a namespace) or namespace. Default workload.
	GroupBy string `json:"groupBy,omitempty"`
	// Results that are listed: some of pass, fail, warn, error and skip. Default: all.
	Results []string `json:"results,omitempty"`
	// Count passes in the summary only, which makes reports much smaller.
	CountPasses bool `json:"countPasses,omitempty"`
	// Results in one object; a larger report is split into numbered parts. Default 1000.
	MaxResults int `json:"maxResults,omitempty"`
	// Requests per second to the API server for reports, in addition to those of kubernetes.qps.
	// Default 100.
	QPS float32 `json:"qps,omitempty"`
	// Requests that may be sent at once after a pause, before qps applies. Default 200.
	Burst int `json:"burst,omitempty"`
}

// ReportAPIs are the APIs by their names in the configuration.
func ReportAPIs() map[string]policyreport.API {
	return map[string]policyreport.API{"policyreport": policyreport.PolicyReports, "openreports": policyreport.OpenReports}
}

func (r *Reports) fill() {
	if r.APIs == nil {
		r.APIs = &[]string{"policyreport"}
	}
	orText(&r.GroupBy, string(policyreport.ByWorkload))
	if r.QPS == 0 {
		r.QPS = 100
	}
	if r.Burst == 0 {
		r.Burst = 200
	}
}

func (r *Reports) check(found *complaints) {
	for _, name := range *r.APIs {
		_, known := ReportAPIs()[name]
		found.refuse(!known, "reports.apis: %q: want policyreport, openreports, both, or an empty list for none", name)
	}
	found.refuse(!slices.Contains(policyreport.Groupings(), policyreport.Grouping(r.GroupBy)),
		"reports.groupBy: %q: want one of %v", r.GroupBy, policyreport.Groupings())
	for _, status := range r.Results {
		found.refuse(!slices.Contains(result.Statuses(), result.Status(status)), "reports.results: %q: want some of %v", status, result.Statuses())
	}
	found.refuse(r.MaxResults < 0 || r.QPS < 0 || r.Burst < 0, "reports: maxResults, qps and burst cannot be negative")
}
