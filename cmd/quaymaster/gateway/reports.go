package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/webhook/metrics"
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
	// Concurrent requests beyond that. Default 200.
	Burst int `json:"burst,omitempty"`
}

// reportAPIs are the APIs by their names in the configuration.
func reportAPIs() map[string]policyreport.API {
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
		_, known := reportAPIs()[name]
		found.refuse(!known, "reports.apis: %q: want policyreport, openreports, both, or an empty list for none", name)
	}
	found.refuse(!slices.Contains(policyreport.Groupings(), policyreport.Grouping(r.GroupBy)), "reports.groupBy: %q: want one of %v", r.GroupBy, policyreport.Groupings())
	for _, status := range r.Results {
		found.refuse(!slices.Contains(result.Statuses(), result.Status(status)), "reports.results: %q: want some of %v", status, result.Statuses())
	}
	found.refuse(r.MaxResults < 0 || r.QPS < 0 || r.Burst < 0, "reports: maxResults, qps and burst cannot be negative")
}

// selectionOf returns the results that reports list.
func selectionOf(r *Reports) policyreport.Selection {
	shown := policyreport.Selection{CountPasses: r.CountPasses}
	for _, status := range r.Results {
		shown.Statuses = append(shown.Statuses, result.Status(status))
	}
	return shown
}

// report prepares the writing of reports.
func (g *gateway) report(context.Context) error {
	settings := &g.configuration.Reports
	if g.cluster == nil || len(*settings.APIs) == 0 {
		return nil
	}
	// A client of its own, so that no request waits for a report.
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: g.configuration.Kubernetes.Kubeconfig, QPS: float64(settings.QPS), Burst: settings.Burst, Version: g.options.Version,
	})
	if err != nil {
		return err
	}
	stores := map[policyreport.API]publish.Store{}
	for _, name := range *settings.APIs {
		api := reportAPIs()[name]
		store, err := reports.NewStore(client.Dynamic, api)
		if err != nil {
			return err
		}
		stores[api] = store
		g.shelves = append(g.shelves, store)
	}
	workloads, err := reports.NewWorkloads(client.Metadata)
	if err != nil {
		return err
	}
	g.ends = append(g.ends, workloads.Close)
	g.reports, err = publish.New(publish.Options{
		Stores: stores, Workloads: workloads, Grouping: policyreport.Grouping(settings.GroupBy), Selection: selectionOf(settings),
		Limits: policyreport.Limits{Results: settings.MaxResults}, Observer: reportLog{g.log, g.metrics}, Unasked: g.unasked,
	})
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	g.sinks.last = append(g.sinks.last, g.reports)
	g.tasks = append(g.tasks, forever("reports", g.reports.Run), forever("reports of before", g.recallReports()))
	return nil
}

// reportLog implements publish.Observer.
type reportLog struct {
	log     *slog.Logger
	metrics *metrics.Metrics
}

// Wrote counts.
func (l reportLog) Wrote(what publish.Written) { l.metrics.ReportWritten(string(what)) }

// Dropped counts.
func (l reportLog) Dropped(why publish.Drop, count int) { l.metrics.ReportDropped(string(why), count) }

// Failed logs an error.
func (l reportLog) Failed(err error) {
	l.log.Warn("a report was not written", slog.String("error", err.Error()))
}

// Served logs whether an API is served.
func (l reportLog) Served(api policyreport.API, served bool) {
	if served {
		l.log.Info("the API server knows reports of this API now", slog.String("api", string(api)))
		return
	}
	l.log.Info("the API server does not know reports of this API, so that none are written until its definitions are installed; set reports.apis to write others, or none",
		slog.String("api", string(api)))
}
