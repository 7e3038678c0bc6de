package gateway

import (
	"context"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/deleting"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/enforcing"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/background"
	"github.com/quaymaster/quaymaster/gateway/webhooks"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// addLeaderComponents adds the components that one replica runs for all, and the election.
func (g *assembly) addLeaderComponents() error {
	if g.around.Cluster == nil {
		return nil
	}
	var err error
	g.webhooks, err = g.newWebhooks()
	if err != nil {
		return err
	}
	g.shared.replicas = g.newReplicas()
	g.group.Add("leader", gateway.Func(g.lead))
	g.addBackground()
	if err := deleting.Add(deleting.Options{
		Configuration: g.configuration, Replica: g.options.Replica, Version: g.options.Version, Around: g.around, Documents: g.documents,
		Certificates: g.certificates, Decisions: g.records.Decisions, Open: g.open, Group: &g.group, Metrics: g.metrics, Log: g.log,
	}); err != nil {
		return err
	}
	if err := enforcing.Add(g.configuration, enforcing.Options{
		Client: g.around.Cluster.Client, Documents: g.documents, Group: &g.group, Metrics: g.metrics, Log: g.log,
	}); err != nil {
		return err
	}
	g.addScan()
	g.addAnalysis()
	for _, c := range []struct {
		name, role string
		component  gateway.Component
	}{
		{"state of policies", config.RoleAdmission, gateway.LeaderFunc(g.documents.ReportAll)},
		{"replicas", config.RoleAdmission, gateway.LeaderFunc(g.shared.replicas.Sweep)},
		{"owners of status", config.RoleAdmission, gateway.LeaderFunc(g.documents.FollowOwners)},
		{"status of mirrors", config.RoleAdmission, gateway.LeaderFunc(func(ctx context.Context) { g.documents.WriteMirrors(ctx, g.workloads.engines.targets) })},
		{"status of global context", config.RoleAdmission, gateway.LeaderFunc(g.documents.WriteGlobals)},
		{"webhook configurations", config.RoleAdmission, g.webhooks},
		{"break glass", config.RoleAdmission, gateway.LeaderFunc(g.records.CloseNamespaces)},
		{"reports of policies", config.RoleReport, gateway.LeaderFunc(g.records.RemoveResults)},
	} {
		if g.configuration.Has(c.role) {
			g.group.Add(c.name, c.component)
		}
	}
	return nil
}

// addBackground adds the runner of rules about other objects. In shadow mode it does not run, also
// where namespaces are cut over: no selector limits the rules to them.
func (g *assembly) addBackground() {
	if !g.configuration.Has(config.RoleBackground) || g.configuration.Shadow() {
		return
	}
	settings := background.Config{
		Client: g.around.Cluster.Client.Dynamic, Leases: g.around.Cluster.Client.Leases, Namespace: g.configuration.Namespace, Replica: g.options.Replica,
		Excluded: *g.configuration.Webhooks.ExcludedNamespaces, Kinds: g.documents.Kinds, Policies: g.documents.Current(),
		Namespaces: g.around.Namespaces, Key: g.certificates.Key, Metrics: g.metrics, Log: g.log,
	}
	if g.around.Cluster.Events != nil {
		settings.Events = g.around.Cluster.Events
	}
	if g.records.Reports != nil {
		settings.Reports = g.records.Reports
	}
	g.group.Add("background", background.New(settings))
}

// lead runs the components of the leader on one replica at a time. A replica becomes a candidate only after its
// preconditions for decisions are met.
func (g *assembly) lead(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-g.open:
	}
	return g.around.Cluster.Leader.Run(ctx, func(ctx context.Context) {
		g.log.Info("this replica leads")
		g.group.Lead(ctx)
	})
}

// newWebhooks makes the component that keeps the webhook configurations.
func (g *assembly) newWebhooks() (*webhooks.Controller, error) {
	c, of := g.configuration, g.configuration.Webhooks
	return webhooks.New(webhooks.Config{
		Natives: enforcing.Controllers(c, g.around.Cluster.Client.Leases),
		Settings: webhooks.Settings{
			Namespace: c.Namespace, Owner: of.Owner, URL: of.URL, Service: of.Service, Port: of.Port, FailurePolicy: of.FailurePolicy,
			ExcludedNamespaces: *of.ExcludedNamespaces, BreakGlass: of.BreakGlass, Shadow: c.Shadow(), Lifetimes: c.HasLifetimes(),
			OptIn:   c.Policies.ClusterImagePolicies.OptIn,
			Pinning: configuration.Pinning{MutateControllers: of.MutateControllers, OnlyPods: of.OnlyPods},
		},
		Disabled: of.Disabled, Client: g.around.Cluster.Client, Documents: g.documents, Mirrors: g.documents.Mirrors.Set,
		Updates: &g.documents.Policies.Updates, Definitions: &g.around.Cluster.Defined, Certificates: g.certificates,
		Readiness: g.documents.Policies.Reporter.Readiness, Metrics: g.metrics, Log: g.log,
	})
}
