package gateway

import (
	"context"
	"log/slog"
	"sync"

	"github.com/quaymaster/quaymaster/cluster/probe"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/background"
	"github.com/quaymaster/quaymaster/gateway/discovery"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/gateway/status"
)

// addLeaderComponents adds the components that one replica runs for all, and the election.
func (g *assembly) addLeaderComponents() {
	if g.cluster == nil {
		return
	}
	g.group.Add("leader", gateway.Func(g.lead))
	g.addBackground()
	g.addScan()
	g.addAnalysis()
	for _, c := range []struct {
		name, role string
		run        gateway.LeaderFunc
	}{
		{"state of policies", config.RoleAdmission, g.documents.ReportAll}, {"replicas", config.RoleAdmission, g.sweep},
		{"owners of status", config.RoleAdmission, g.documents.FollowOwners},
		{"status of mirrors", config.RoleAdmission, func(ctx context.Context) { g.documents.WriteMirrors(ctx, g.targets) }}, {"status of global context", config.RoleAdmission, g.documents.WriteGlobals},
		{"webhook configurations", config.RoleAdmission, g.configure}, {"break glass", config.RoleAdmission, g.records.CloseNamespaces},
		{"reports of policies", config.RoleReport, g.records.RemoveResults},
	} {
		if g.configuration.Has(c.role) {
			g.group.Add(c.name, c.run)
		}
	}
}

// addBackground adds the runner of rules about other objects. In shadow mode it does not run, also
// where namespaces are cut over: no selector limits the rules to them.
func (g *assembly) addBackground() {
	if !g.configuration.Has(config.RoleBackground) || g.configuration.Shadow() {
		return
	}
	settings := background.Config{
		Client: g.cluster.Client.Dynamic, Leases: g.cluster.Client.Leases, Namespace: g.configuration.Namespace, Replica: g.options.Replica,
		Excluded: *g.configuration.Webhooks.ExcludedNamespaces, Kinds: g.documents.Kinds, Policies: g.documents.Current(),
		Namespaces: g.around.Namespaces, Key: g.certificates.Key, Metrics: g.metrics, Log: g.log,
	}
	if g.cluster.Events != nil {
		settings.Events = g.cluster.Events
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
	return g.cluster.Leader.Run(ctx, func(ctx context.Context) {
		g.log.Info("this replica leads")
		g.group.Lead(ctx)
	})
}

// sweep removes the remains of former replicas.
func (g *assembly) sweep(ctx context.Context) {
	if g.members != nil {
		g.members.Sweep(ctx)
	}
}

// configure maintains the webhook configurations until ctx ends.
func (g *assembly) configure(ctx context.Context) {
	ready := g.documents.Policies.Reporter.Readiness
	ready.Begin(!g.configuration.Webhooks.Disabled)
	g.documents.Policies.WriteStatus()
	if g.configuration.Webhooks.Disabled {
		return
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	kept := &webhooks{
		settings: g.configuration.Webhooks, optIn: g.configuration.Policies.ClusterImagePolicies.OptIn,
		namespace: g.configuration.Namespace, client: g.cluster.Client, log: g.log,
		shadow: g.configuration.Shadow(), keeping: &g.keeping, bundle: g.certificates.Bundle, policies: g.documents.Active,
		mirrors: g.documents.Mirrors.Set, documents: kinds.Validated(),
		readiness: ready, sequence: g.documents.Policies.Sequence.Load,
	}
	changed := make(chan struct{}, 1)
	reconciler, err := kept.reconciler(changed)
	var asks *probe.Prober
	if err == nil {
		asks, err = probe.New(probe.Options{Config: g.cluster.Client.Config(), Slices: g.cluster.Client.Typed.DiscoveryV1(), Namespace: g.configuration.Namespace})
	}
	if err != nil {
		g.log.Error("the webhook configurations cannot be kept", slog.String("error", err.Error()))
		return
	}
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	beside.Go(func() { notice(ctx, changed, &g.documents.Policies.Updates, g.certificates) })
	beside.Go(func() { g.watchConfigurations(ctx, tell) })
	beside.Go(func() { discovery.WatchDefinitions(ctx, &g.cluster.Defined, tell) })
	beside.Go(func() { ready.Run(ctx, asks) })
	beside.Go(func() { // configurations not observed by then are not ready
		gateway.Idle(ctx, status.GraceTime)
		if ctx.Err() == nil {
			g.documents.Policies.WriteStatus()
		}
	})
	reconciler.Run(ctx)
}
