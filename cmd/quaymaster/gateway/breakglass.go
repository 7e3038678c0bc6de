package gateway

import (
	"context"

	"github.com/quaymaster/quaymaster/cluster/breakglass"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// openBreakGlass prepares the closing of namespaces that break glass has opened to unverified images.
func (r *records) openBreakGlass() error {
	if r.options.cluster == nil || !r.options.configuration.Webhooks.BreakGlass {
		return nil
	}
	told := &reporting.BreakGlass{Log: r.options.log, Metrics: r.options.metrics, Again: r.options.scanAgain}
	if r.options.cluster.Events != nil {
		told.Events = r.options.cluster.Events
	}
	if r.decisions != nil {
		told.Record = r.decisions.TakeBreakGlass
	}
	keeper, err := breakglass.New(breakglass.Options{
		Client: r.options.cluster.Client.Metadata, Label: configuration.BreakGlass, Observer: told,
		Memory: reporting.NewOpenNamespaces(r.options.cluster.Client.Leases, r.options.configuration.Namespace, r.options.replica),
	})
	r.breakGlass = keeper
	return err
}

// closeNamespaces closes them until ctx ends.
func (r *records) closeNamespaces(ctx context.Context) {
	if r.breakGlass != nil {
		r.breakGlass.Run(ctx)
	}
}

// openNamespaces returns the open namespaces, for metrics.
func (r *records) openNamespaces() []metrics.OpenNamespace {
	var list []metrics.OpenNamespace
	for _, o := range r.breakGlass.Open() {
		list = append(list, metrics.OpenNamespace{Name: o.Namespace, Until: o.Until})
	}
	return list
}
