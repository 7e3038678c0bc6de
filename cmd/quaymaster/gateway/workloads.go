package gateway

import (
	"context"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/listing"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway/audit"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/dryrun"
	"github.com/quaymaster/quaymaster/webhook/admission"
)

// workloads evaluates running workloads: in scans, in dry runs of policies, and in dry verdicts.
type workloads struct {
	configuration config.Configuration
	version       string
	engines       *engines
	view          *scan.View    // the policies that scans evaluate
	again         chan struct{} // gets a value when a scan is needed soon
	busy          func() bool   // admission requests wait, or will soon, or reports wait to be written
}

// look prepares an evaluation, with a client of its own, so that admission does not wait for its
// requests. end is never nil.
func (w *workloads) look() (lister *listing.Lister, found *cluster.Lookups, end func(), err error) {
	end = func() {}
	k, settings := w.configuration.Kubernetes, w.configuration.Scan
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: k.Kubeconfig, Context: k.Context, QPS: float64(settings.QPS), Burst: max(1, int(settings.QPS)), Version: w.version,
	})
	if err != nil {
		return nil, nil, end, err
	}
	found, err = cluster.NewLookups(cluster.LookupOptions{Client: client.Typed, TTL: scanAge(w.configuration.Ages.Secret)})
	if err != nil {
		return nil, nil, end, err
	}
	lister, err = listing.New(client)
	return lister, found, found.Close, err
}

// decider makes a decider for a view. end is never nil.
func (w *workloads) decider(key []byte, found *cluster.Lookups, view *scan.View) (made scan.Decider, end func(), err error) {
	made, end, err = w.engines.forScan(key, found, view)
	if err != nil {
		end()
		return nil, func() {}, err
	}
	return made, end, nil
}

// open makes the source of a scan.
func (w *workloads) open(key []byte) (audit.Source, error) {
	lister, found, end, err := w.look()
	if err != nil {
		return audit.Source{Close: end}, err
	}
	decider, closed, err := w.decider(key, found, w.view)
	return audit.Source{Lister: lister, Decider: decider, Close: func() { closed(); end() }}, err
}

// dryRun makes the evaluation of policies; busy may be nil. end is never nil.
func (w *workloads) dryRun(key []byte, busy func() bool) (made rollout.DryRun, end func(), err error) {
	lister, found, end, err := w.look()
	if err != nil {
		return nil, end, err
	}
	made, err = dryrun.New(dryrun.Options{
		Cluster: lister, Namespaces: w.engines.around.Namespaces, State: w.engines.state, Excluded: w.excluded(), Busy: busy,
		Decider: func(state gate.State) (scan.Decider, func(), error) {
			return w.decider(key, found, scan.NewView(state))
		},
	})
	return made, end, err
}

// excluded are the namespaces that the webhooks exclude.
func (w *workloads) excluded() []string {
	return append([]string{w.configuration.Namespace}, *w.configuration.Webhooks.ExcludedNamespaces...)
}

// busyPart is the divisor of the request limit: a scan pauses while more than this part of it is in
// use.
const busyPart = 4

// addScan adds the scan of running workloads, with its own cache.
func (g *assembly) addScan() {
	settings := g.configuration.Scan
	if !g.configuration.Has(config.RoleScan) || settings.Disabled {
		return
	}
	g.group.Add("scan", audit.New(audit.Config{
		Open: func(ctx context.Context) (audit.Source, bool, error) {
			key, ok := g.certificates.Key(ctx)
			if !ok {
				return audit.Source{}, false, nil
			}
			made, err := g.workloads.open(key)
			return made, true, err
		},
		View: g.workloads.view, Namespaces: g.around.Namespaces,
		Sinks: audit.Sinks{
			All: slices.Concat(g.records.Sinks.Every, g.records.Sinks.Last), Reports: g.records.Reports, Stores: g.records.Stores,
			Decisions: g.records.Decisions, Inventory: g.records.Inventory,
		},
		Interval: time.Duration(settings.Interval), Excluded: settings.ExcludedNamespaces, Follow: g.configuration.Follows(),
		Policies: &g.documents.Policies.Updates, Again: g.workloads.again, Busy: g.workloads.busy,
		Memory: audit.NewPositionStore(g.around.Cluster.Client.Leases, g.configuration.Namespace, g.options.Replica), Metrics: g.metrics, Log: g.log,
	}))
}

// addAnalysis adds the analysis of policies that are not in force yet.
func (g *assembly) addAnalysis() {
	if !g.configuration.Has(config.RoleAdmission) || !g.configuration.Guards() {
		return
	}
	g.group.Add("guard", rollout.NewAnalysis(g.documents.Rollout(), func(ctx context.Context) (rollout.DryRun, func(), error) {
		key, ok := g.certificates.Key(ctx)
		if !ok {
			return nil, func() {}, nil
		}
		return g.workloads.dryRun(key, g.workloads.busy)
	}))
}

// review makes the evaluation of the policy endpoint; nil without the guard.
func (g *assembly) review(key []byte) (admission.ImpactAnalysis, error) {
	if g.around.Cluster == nil || !g.configuration.Guards() {
		return nil, nil
	}
	dryRun, end, err := g.workloads.dryRun(key, nil)
	g.group.OnClose(end)
	if err != nil {
		return nil, err
	}
	return rollout.NewReview(g.documents.Rollout(), dryRun), nil
}

// compareVerdicts reports the verdicts on running workloads that differ from those of the previous
// version.
func (g *assembly) compareVerdicts(ctx context.Context, key []byte) {
	if g.options.DryVerdicts == 0 {
		return
	}
	if g.around.Cluster == nil {
		g.log.Warn("dry verdicts: without a cluster nothing runs that could be looked at")
		return
	}
	audit.DryVerdicts{
		Limit: g.options.DryVerdicts, Output: g.options.Verdicts, View: g.workloads.view, Namespaces: g.around.Namespaces,
		Open:     func() (audit.Source, error) { return g.workloads.open(key) },
		Excluded: append(g.workloads.excluded(), g.configuration.Scan.ExcludedNamespaces...),
		Reports:  g.around.Cluster.Client.Dynamic, Decisions: g.records.DecisionFolder(), ByID: g.documents.ByID(), Metrics: g.metrics, Log: g.log,
	}.Run(ctx)
}
