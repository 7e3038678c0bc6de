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

// report prepares the writing of reports.
func (g *assembly) report(context.Context) error {
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
		api := config.ReportAPIs()[name]
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
	g.group.OnClose(workloads.Close)
	g.reports, err = publish.New(publish.Options{
		Stores: stores, Workloads: workloads, Grouping: policyreport.Grouping(settings.GroupBy), Selection: selectionOf(settings),
		Limits: policyreport.Limits{Results: settings.MaxResults}, Observer: reporting.ReportLog{Log: g.log, Metrics: g.metrics},
		Unasked: func() []result.Policy { return leftOut(g.scanned) },
	})
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	g.sinks.Last = append(g.sinks.Last, g.reports)
	g.group.Add("reports", gateway.Loop(g.reports.Run))
	g.group.Add("reports of before", gateway.Loop(g.recallReports()))
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
