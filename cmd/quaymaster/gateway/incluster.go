package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/cluster/probe"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/background"
	"github.com/quaymaster/quaymaster/gateway/discovery"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/gateway/status"
	"github.com/quaymaster/quaymaster/policy/set"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// inTheCluster holds the components of a gateway in a cluster.
type inTheCluster struct {
	client  *cluster.Client
	events  *record.Events // nil where no events are written
	leader  *lease.Leader
	members *lease.Members // nil where other replicas are not used
	held    cluster.Held   // the credentials for registries
	defined gateway.Signal // a CustomResourceDefinition came, changed or went
	owners  *status.Owners // of the status of policies
}

// reach prepares the look-ups in the cluster, or in files instead.
func (g *assembly) reach(context.Context) error {
	if g.configuration.Standalone {
		g.around = inFiles(newFiles())
		return nil
	}
	k := g.configuration.Kubernetes
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: k.Kubeconfig, Context: k.Context,
		QPS: float64(k.QPS), Burst: k.Burst, Version: g.options.Version})
	if err != nil {
		return fmt.Errorf("the cluster cannot be reached (to run without one, set standalone: true): %w", err)
	}
	lookups, err := cluster.NewLookups(cluster.LookupOptions{
		Client: client.Typed, Credentials: client.Credentials, TTL: time.Duration(g.configuration.Ages.Secret),
	})
	if err != nil {
		return err
	}
	g.group.OnClose(lookups.Close)
	namespaces, err := cluster.NewNamespaces(cluster.NamespaceOptions{Client: client.Metadata, Failed: g.failed("namespaces cannot be watched")})
	if err != nil {
		return err
	}
	roles, err := cluster.NewRoles(cluster.RoleOptions{Client: client.Typed, Failed: g.failed("role bindings cannot be watched")})
	if err != nil {
		return err
	}
	leader, err := lease.NewLeader(lease.LeaderOptions{
		Client: client.Leases, Namespace: g.configuration.Namespace, Name: g.configuration.Lease(), Identity: g.options.Replica,
	})
	if err != nil {
		return err
	}
	g.cluster = &inTheCluster{client: client, leader: leader, held: cluster.Held{Lookups: lookups}}
	g.around = inCluster(lookups, namespaces, roles)
	g.group.Require("namespaces", "the namespaces are not listed yet", namespaces)
	g.group.Add("namespaces", gateway.Loop(namespaces.Run))
	g.group.Add("roles", gateway.Loop(roles.Run))
	return g.record()
}

// record prepares the writing of events.
func (g *assembly) record() error {
	if g.configuration.Events.Disabled {
		return nil
	}
	events, err := record.NewEvents(record.EventOptions{
		Client: g.cluster.client.Typed, Controller: "quaymaster.dev/gateway", Instance: g.options.Replica, Failed: g.failed("an event was not written"),
	})
	if err != nil {
		return err
	}
	g.cluster.events = events
	g.group.Add("events", gateway.Loop(events.Run))
	return nil
}

// watch prepares the watching of the cluster's policies.
func (g *assembly) watch() error {
	p, client := g.policies, g.cluster.client
	p.await(kinds.FromCluster)
	m := g.mirrors
	m.AwaitCluster()
	p.reporter.Leads = g.tells
	m.ReportTo(nil, g.tells)
	if g.cluster.events != nil {
		p.reporter.Events = g.cluster.events
		m.ReportTo(g.cluster.events, g.tells)
	}
	conditions, err := record.NewStatus(record.StatusOptions{Client: client.Dynamic, Failed: g.failed("the status of a policy was not written")})
	if err != nil {
		return err
	}
	g.cluster.owners = &status.Owners{
		Always: g.configuration.Policies.WriteStatus == config.StatusAlways, Never: g.configuration.Policies.WriteStatus == config.StatusNever,
		Client: client.Metadata, Log: g.log,
	}
	p.reporter.Conditions, p.reporter.Writes = conditions, g.cluster.owners.Writes
	p.reporter.Readiness = status.NewReadiness(g.log, p.writeStatus)
	p.reporter.Controllers = &status.Controllers{Own: g.configuration.Has(config.RoleBackground), Leases: client.Leases, Namespace: g.configuration.Namespace,
		Names: []string{config.ScanLeaderLease, config.BackgroundLeaderLease}}
	g.group.Add("status", gateway.Loop(conditions.Run))
	watcher, err := document.New(document.Options{
		Kinds:   append(append(kinds.Watched(), kinds.GlobalContext()), kinds.Mirrors(g.configuration.Mirrors.OpenShift)...),
		Dynamic: client.Dynamic, Metadata: client.Metadata, Definitions: client,
		Consumer: g.consumer(&sorter{globals: g.globals, mirrors: m, policies: p}), Observer: documentLog{g.log},
		Defined: g.cluster.defined.Notify,
	})
	if err != nil {
		return err
	}
	g.group.Require("watch", "the policies and mirrors in the cluster are not listed yet; where the log names a definition that serves no version which is read, have it serve one, delete it, or update the gateway", watcher)
	g.group.Add("policies", gateway.Loop(watcher.Run))
	return nil
}

// tells reports whether this process writes the state of policies and mirrors to the cluster.
func (g *assembly) tells() bool {
	return g.configuration.Has(config.RoleAdmission) && g.cluster.leader.Leads()
}

// sorter is the document.Consumer of global context entries, mirrors and policies.
type sorter struct {
	globals, mirrors, policies document.Consumer
	told                       bool
}

// Changed implements document.Consumer: each consumer gets its own documents, and the first time
// also an empty list.
func (s *sorter) Changed(ctx context.Context, upserts []document.Document, deletes []document.Key) {
	// Policies last: a new policy must not be evaluated without its dependencies.
	for _, to := range []struct {
		consumer document.Consumer
		owns     func(document.Key) bool
	}{
		{s.globals, kinds.IsGlobalContext},
		{s.mirrors, func(key document.Key) bool { return !kinds.IsGlobalContext(key) && !kinds.IsPolicy(key) }},
		{s.policies, kinds.IsPolicy},
	} {
		own := slices.DeleteFunc(slices.Clone(upserts), func(d document.Document) bool { return !to.owns(d.Key) })
		gone := slices.DeleteFunc(slices.Clone(deletes), func(key document.Key) bool { return !to.owns(key) })
		if !s.told || len(own)+len(gone) > 0 {
			to.consumer.Changed(ctx, own, gone)
		}
	}
	s.told = true
}

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
		{"state of policies", config.RoleAdmission, g.tellAll}, {"replicas", config.RoleAdmission, g.sweep},
		{"owners of status", config.RoleAdmission, g.followOwners},
		{"status of mirrors", config.RoleAdmission, g.tellMirrors}, {"status of global context", config.RoleAdmission, g.tellGlobals},
		{"webhook configurations", config.RoleAdmission, g.configure}, {"break glass", config.RoleAdmission, g.keepGlass},
		{"reports of policies", config.RoleReport, g.keepReports},
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
		Client: g.cluster.client.Dynamic, Leases: g.cluster.client.Leases, Namespace: g.configuration.Namespace, Replica: g.options.Replica,
		Excluded: *g.configuration.Webhooks.ExcludedNamespaces, Kinds: g.kinds, Policies: currentPolicies{g.state, &g.policies.changed},
		Namespaces: g.around.namespaces, Key: g.certificates.Key, Metrics: g.metrics, Log: g.log,
	}
	if g.cluster.events != nil {
		settings.Events = g.cluster.events
	}
	g.group.Add("background", background.New(settings))
}

// currentPolicies are the active policies, and the changes of their set.
type currentPolicies struct {
	state *gate.Current
	gateway.Changing
}

// Policies returns the active ones; nil until they are loaded.
func (p currentPolicies) Policies() *set.Set {
	now, err := p.state.Snapshot(context.Background())
	if err != nil {
		return nil
	}
	return now.Policies
}

// lead runs the components of the leader on one replica at a time. A replica becomes a candidate only after its
// preconditions for decisions are met.
func (g *assembly) lead(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-g.open:
	}
	return g.cluster.leader.Run(ctx, func(ctx context.Context) {
		g.log.Info("this replica leads")
		g.group.Lead(ctx)
	})
}

// tellAll reports the state of policies and mirrors, which the previous leader may not have done.
func (g *assembly) tellAll(context.Context) {
	g.policies.tellAll()
	g.mirrors.ReportAll()
}

// followOwners determines which engine owns the status of policies, and whether a controller
// runs.
func (g *assembly) followOwners(ctx context.Context) {
	var beside sync.WaitGroup
	defer beside.Wait()
	beside.Go(func() { g.policies.reporter.Controllers.Follow(ctx, g.policies.writeStatus) })
	g.cluster.owners.Follow(ctx, func() {
		g.policies.writeStatus()
		g.globals.StatusChanged.Notify()
	})
}

// sweep removes the remains of former replicas.
func (g *assembly) sweep(ctx context.Context) {
	if g.cluster.members != nil {
		g.cluster.members.Sweep(ctx)
	}
}

// tellMirrors writes the status of mirrors.
func (g *assembly) tellMirrors(ctx context.Context) {
	(&record.Reporter{
		Kind: "RegistryMirror", Client: g.cluster.client.Dynamic, Desired: func() []record.Desired { return g.mirrors.Desired(g.targets.States()) },
		Changed: g.mirrors.StatusChanged().Changed, Failed: g.failed("the status of a mirror was not written"),
	}).Run(ctx)
}

// tellGlobals writes the status of global context entries, while the gateway owns it.
func (g *assembly) tellGlobals(ctx context.Context) {
	(&record.Reporter{
		Kind: "GlobalContextEntry", Client: g.cluster.client.Dynamic, Changed: g.globals.StatusChanged.Changed, Failed: g.failed("the status of a global context entry was not written"),
		Desired: func() []record.Desired {
			if !g.cluster.owners.Writes(kinds.KyvernoGroup) {
				return nil
			}
			return g.globals.Desired()
		},
	}).Run(ctx)
}

// configure maintains the webhook configurations until ctx ends.
func (g *assembly) configure(ctx context.Context) {
	ready := g.policies.reporter.Readiness
	ready.Begin(!g.configuration.Webhooks.Disabled)
	g.policies.writeStatus()
	if g.configuration.Webhooks.Disabled {
		return
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	kept := &webhooks{
		settings: g.configuration.Webhooks, optIn: g.configuration.Policies.ClusterImagePolicies.OptIn,
		namespace: g.configuration.Namespace, client: g.cluster.client, log: g.log,
		shadow: g.configuration.Shadow(), keeping: &g.keeping, bundle: g.certificates.Bundle, policies: g.activePolicies,
		mirrors: g.mirrors.Set, documents: kinds.Validated(),
		readiness: ready, sequence: g.policies.sequence.Load,
	}
	changed := make(chan struct{}, 1)
	reconciler, err := kept.reconciler(changed)
	var asks *probe.Prober
	if err == nil {
		asks, err = probe.New(probe.Options{Config: g.cluster.client.Config(), Slices: g.cluster.client.Typed.DiscoveryV1(), Namespace: g.configuration.Namespace})
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
	beside.Go(func() { notice(ctx, changed, &g.policies.changed, g.certificates) })
	beside.Go(func() { g.watchConfigurations(ctx, tell) })
	beside.Go(func() { discovery.WatchDefinitions(ctx, &g.cluster.defined, tell) })
	beside.Go(func() { ready.Run(ctx, asks) })
	beside.Go(func() { // configurations not observed by then are not ready
		gateway.Idle(ctx, status.GraceTime)
		if ctx.Err() == nil {
			g.policies.writeStatus()
		}
	})
	reconciler.Run(ctx)
}

// activePolicies are the current ones; nil until they are loaded.
func (g *assembly) activePolicies() *set.Set { return currentPolicies{state: g.state}.Policies() }

// documentLog is the document.Observer of the log.
type documentLog struct{ log *slog.Logger }

// Pruned implements document.Observer.
func (d documentLog) Pruned(kind schema.GroupVersionResource, place string) {
	d.log.Warn("the API server drops unknown fields of these documents before anybody can see and refuse them: a misspelt field is lost without a word",
		slog.String("resource", kind.GroupResource().String()), slog.String("version", kind.Version), slog.String("below", place))
}

// Served implements document.Observer.
func (d documentLog) Served(kind schema.GroupVersionResource, served bool) {
	d.log.Info("custom resource", slog.String("resource", kind.GroupResource().String()), slog.String("version", kind.Version), slog.Bool("watched", served))
}

// Failed implements document.Observer.
func (d documentLog) Failed(err error) {
	d.log.Warn("policies and mirrors cannot be watched; those that were active stay so", slog.String("error", err.Error()))
}
