package reporting

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
func (r *Records) openReports() error {
	settings := &r.options.Configuration.Reports
	if r.options.Cluster == nil || len(*settings.APIs) == 0 {
		return nil
	}
	// A client of its own, so that no request waits for a report.
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: r.options.Configuration.Kubernetes.Kubeconfig, QPS: float64(settings.QPS), Burst: settings.Burst, Version: r.options.Version,
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
		r.Stores = append(r.Stores, store)
	}
	workloads, err := reports.NewWorkloads(client.Metadata)
	if err != nil {
		return err
	}
	r.options.Group.OnClose(workloads.Close)
	r.Reports, err = publish.New(publish.Options{
		Stores: stores, Workloads: workloads, Grouping: policyreport.Grouping(settings.GroupBy), Selection: selectionOf(settings),
		Limits: policyreport.Limits{Results: settings.MaxResults}, Observer: reporting.ReportLog{Log: r.options.Log, Metrics: r.options.Metrics},
		Unasked: func() []result.Policy { return reporting.LeftOut(r.options.Scanned) },
		Others:  reporting.AboutOthers(r.options.Documents.Active),
	})
	if err != nil {
		return fmt.Errorf("reports: %w", err)
	}
	r.Sinks.Last, r.Sinks.Mutated = append(r.Sinks.Last, r.Reports), append(r.Sinks.Mutated, r.Reports)
	r.options.Group.Add("reports", gateway.Loop(r.Reports.Run))
	r.options.Group.Add(
		"reports of before",
		reporting.NewRestoration(r.DecisionFolder(), r.options.Log).Reports(r.options.Open, r.options.Documents.ByID, r.Reports.Put),
	)
	return nil
}

// RemoveResults removes the results of deleted policies from reports until ctx ends.
func (r *Records) RemoveResults(ctx context.Context) {
	if r.Reports == nil {
		return
	}
	d := r.options.Documents
	reporting.Removal{Reports: r.Reports, Stores: r.Stores, Updates: &d.Policies.Updates, Active: d.Active, Log: r.options.Log}.Run(ctx)
}
