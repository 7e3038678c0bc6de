package reporting

import (
	"context"

	"github.com/quaymaster/quaymaster/cluster/breakglass"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// openBreakGlass prepares the closing of namespaces that break glass has opened to unverified images.
func (r *Records) openBreakGlass() error {
	if r.options.Cluster == nil || !r.options.Configuration.Webhooks.BreakGlass {
		return nil
	}
	told := &reporting.BreakGlass{Log: r.options.Log, Metrics: r.options.Metrics, Again: r.options.ScanAgain}
	if r.options.Cluster.Events != nil {
		told.Events = r.options.Cluster.Events
	}
	if r.Decisions != nil {
		told.Record = r.Decisions.TakeBreakGlass
	}
	keeper, err := breakglass.New(breakglass.Options{
		Client: r.options.Cluster.Client.Metadata, Label: configuration.BreakGlass, Observer: told,
		Memory: reporting.NewOpenNamespaces(r.options.Cluster.Client.Leases, r.options.Configuration.Namespace, r.options.Replica),
	})
	r.BreakGlass = keeper
	return err
}

// CloseNamespaces closes them until ctx ends.
func (r *Records) CloseNamespaces(ctx context.Context) {
	if r.BreakGlass != nil {
		r.BreakGlass.Run(ctx)
	}
}

// OpenNamespaces returns the open namespaces, for metrics.
func (r *Records) OpenNamespaces() []metrics.OpenNamespace {
	var list []metrics.OpenNamespace
	for _, o := range r.BreakGlass.Open() {
		list = append(list, metrics.OpenNamespace{Name: o.Namespace, Until: o.Until})
	}
	return list
}
