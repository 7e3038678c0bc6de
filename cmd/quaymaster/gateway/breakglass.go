package gateway

import (
	"context"

	"github.com/quaymaster/quaymaster/cluster/breakglass"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// glass prepares the closing of namespaces that break glass has opened to unverified images.
func (g *assembly) glass(context.Context) error {
	if g.cluster == nil || !g.configuration.Webhooks.BreakGlass {
		return nil
	}
	told := &reporting.BreakGlass{Log: g.log, Metrics: g.metrics, Again: g.scanAgain}
	if g.cluster.Events != nil {
		told.Events = g.cluster.Events
	}
	if g.decisions != nil {
		told.Record = g.decisions.TakeBreakGlass
	}
	keeper, err := breakglass.New(breakglass.Options{
		Client: g.cluster.Client.Metadata, Label: configuration.BreakGlass, Observer: told,
		Memory: reporting.NewOpenNamespaces(g.cluster.Client.Leases, g.configuration.Namespace, g.options.Replica),
	})
	g.keeper = keeper
	return err
}

// keepGlass closes them until ctx ends.
func (g *assembly) keepGlass(ctx context.Context) {
	if g.keeper != nil {
		g.keeper.Run(ctx)
	}
}

// openNamespaces returns the open namespaces, for metrics.
func (g *assembly) openNamespaces() []metrics.OpenNamespace {
	var list []metrics.OpenNamespace
	for _, o := range g.keeper.Open() {
		list = append(list, metrics.OpenNamespace{Name: o.Namespace, Until: o.Until})
	}
	return list
}
