package gateway

import (
	"context"
	"fmt"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/reports"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/report/policyreport"
	"github.com/quaymaster/quaymaster/report/publish"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/scan"
)

// selectionOf returns the results that reports list.
func selectionOf(r *config.Reports) policyreport.Selection {
	shown := policyreport.Selection{CountPasses: r.CountPasses}
	for _, status := range r.Results {
		shown.Statuses = append(shown.Statuses, result.Status(status))
	}
	return shown
}

// openReports prepares the writing of reports.
func (r *records) openReports() error {
	settings := &r.options.configuration.Reports
	if r.options.cluster == nil || len(*settings.APIs) == 0 {
		return nil
	}
	// A client of its own, so that no request waits for a report.
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: r.options.configuration.Kubernetes.Kubeconfig, QPS: float64(settings.QPS), Burst: settings.Burst, Version: r.options.version,
	})
	if err != nil {
		return err
	}
	stores := map[policyreport.API]publish.Store{}
	for _, name := range *settings.APIs {
		api := config.ReportAPIs()[name]
		store, err := reports.NewStore(client.Dynamic, api)
		if err != nil {
			return err
		}
		stores[api] = store
		r.stores = append(r.stores, store)
	}
	workloads, err := reports.NewWorkloads(client.Metadata)
	if err != nil {
		return err
	}
	r.options.group.OnClose(workloads.Close)
	r.reports, err = publish.New(publish.Options{
		Stores: stores, Workloads: workloads, Grouping: policyreport.Grouping(settings.GroupBy), Selection: selectionOf(settings),
		Limits: policyreport.Limits{Results: settings.MaxResults}, Observer: reporting.ReportLog{Log: r.options.log, Metrics: r.options.metrics},
		Unasked: func() []result.Policy { return leftOut(r.options.scanned) },
	})
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	r.sinks.Last = append(r.sinks.Last, r.reports)
	r.options.group.Add("reports", gateway.Loop(r.reports.Run))
	r.options.group.Add("reports of before", gateway.Loop(r.restoreReports()))
	return nil
}

// leftOut are the policies that a scan does not evaluate: their results from admission stay.
func leftOut(view *scan.View) []result.Policy {
	left, err := view.LeftOut(context.Background())
	if err != nil {
		return nil // no scan has started
	}
	list := make([]result.Policy, len(left))
	for i, each := range left {
		list[i] = result.Policy{Kind: each.Policy.Kind, Namespace: each.Policy.Namespace, Name: each.Policy.Name}
	}
	return list
}
