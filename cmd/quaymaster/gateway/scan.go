package gateway

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/listing"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/result"
	"github.com/quaymaster/quaymaster/scan"
	changes "github.com/quaymaster/quaymaster/scan/follow"
)

// scan scans all objects in rounds until ctx ends.
func (g *assembly) scan(ctx context.Context) {
	if g.configuration.Scan.Disabled {
		return
	}
	key, ok := g.certificates.wait(ctx)
	if !ok {
		return
	}
	made, ends, err := g.scanner(key)
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	if err != nil {
		g.log.Error("what runs already is not scanned", slog.String("error", err.Error()))
		return
	}
	var beside sync.WaitGroup
	defer beside.Wait()
	if made.follower != nil {
		beside.Go(func() { made.follower.Run(ctx, made.scanner) })
	}
	made.controller.Run(ctx)
}

// scanning is a wired scan.
type scanning struct {
	scanner    *scan.Scanner
	controller *scan.Controller
	follower   *changes.Follower // nil where nothing is followed
}

// scanner wires a scan with clients of its own, so that admission does not wait for its requests.
// It has its own cache, and reads that of admission first.
func (g *assembly) scanner(key []byte) (made scanning, ends []func(), err error) {
	settings := g.configuration.Scan
	k := g.configuration.Kubernetes
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: k.Kubeconfig, Context: k.Context, QPS: float64(settings.QPS), Burst: max(1, int(settings.QPS)), Version: g.options.Version,
	})
	if err != nil {
		return made, ends, err
	}
	lookups, err := cluster.NewLookups(cluster.LookupOptions{Client: client.Typed, TTL: scanAge(g.configuration.Ages.Secret)})
	if err != nil {
		return made, ends, err
	}
	ends = append(ends, lookups.Close)
	view := g.scanned
	engine, closed, err := g.scanEngine(key, lookups, view)
	ends = append(ends, closed...)
	if err != nil {
		return made, ends, err
	}
	lister, err := listing.New(client)
	if err != nil {
		return made, ends, err
	}
	sinks, keeper := g.scanSinks()
	told := &scanLog{log: g.log, metrics: g.metrics, leftOut: view.LeftOut}
	options := scan.Options{
		Cluster: lister, Decider: engine, State: view, Namespaces: g.around.namespaces, Observer: told, Sinks: sinks, Keeper: keeper, Forgetter: g.scanForgetters(),
		Excluded: settings.ExcludedNamespaces, Busy: g.busy,
	}
	if g.configuration.Follows() {
		made.follower, err = changes.New(changes.Options{Cluster: lister, Observer: followLog{log: g.log, metrics: g.metrics}, Excluded: settings.ExcludedNamespaces})
		if err != nil {
			return made, ends, err
		}
		options.Follower = made.follower
	}
	made.scanner, err = scan.New(options)
	if err != nil {
		return made, ends, err
	}
	made.controller, err = scan.NewController(made.scanner, scan.ControllerOptions{
		Policies: &g.policies.changed, Interval: time.Duration(settings.Interval), Settled: scanSettled, Again: g.scanAgain,
		Memory: newPositionStore(g.cluster.client.Leases, g.configuration.Namespace, g.options.Replica),
	})
	return made, ends, err
}

// scanAge is the lifetime of cached Secrets, service accounts and digests behind tags in a scan:
// long enough for the hundreds of pods of a namespace, which are scanned consecutively.
func scanAge(usual config.Duration) time.Duration { return max(time.Duration(usual), scanAges) }

const (
	scanAges = 5 * time.Minute
	// scanPage bounds the time for one page of objects with possibly only new images.
	scanPage = 10 * time.Minute
	// scanSettled is the longest time from a decision to its report, if the API server is
	// available: the wait of package publish for more results, and as long again to write.
	scanSettled = 30 * time.Second
	// busyPart is the divisor of the request limit: a scan pauses while more than this part of it
	// is in use.
	busyPart = 4
)

// scanEngine makes the gate of a scan.
func (g *assembly) scanEngine(key []byte, lookups *cluster.Lookups, view *scan.View) (made *gate.Gate, ends []func(), err error) {
	settings, c := g.configuration.Scan, g.configuration
	c.Registries.PerHost, c.Registries.Total = settings.PerHost, settings.Total
	c.Ages.Tag = config.Duration(scanAge(c.Ages.Tag))
	client, err := newClient(c.Registries, g.metrics.RegistryAnswered, registry.WithAllowance(g.allowance, true))
	if err != nil {
		return nil, nil, err
	}
	ends = append(ends, client.Close)
	scopes, err := scopesKey(key)
	if err != nil {
		return nil, ends, err
	}
	around := g.around
	around.credentials, around.accounts = lookups, lookups
	chain, err := newKeychain(c.Registries, client, around, scopes)
	if err != nil {
		return nil, ends, err
	}
	calm, err := scan.NewCalm(registries{chain}, float64(settings.RegistryQPS))
	if err != nil {
		return nil, ends, err
	}
	chooser, err := newChooser(c.Ages, g.targets)
	if err != nil {
		return nil, ends, err
	}
	made, err = newGate(c, calm, view, gate.WithTimeout(scanPage), gate.WithMirrors(chooser, cluster.PullSecrets{Lookups: lookups}),
		gate.WithConcurrency(settings.Total), gate.WithPeers(besides{g.engineMade}))
	return made, ends, err
}

// besides reads the cache of another gate of this process.
type besides struct{ of *gate.Gate }

// Recall implements gate.Peers.
func (b besides) Recall(_ context.Context, keys []string) map[string][]byte {
	return b.of.Remembered(keys)
}

// scanSinks are the sinks of a scan: the scan waits for reports, all others take as much as they
// can, and the decision log gets only changes.
func (g *assembly) scanSinks() ([]report.Sink, scan.Keeper) {
	all := slices.Concat(g.sinks.every, g.sinks.last)
	if g.decisions != nil {
		all = slices.DeleteFunc(all, func(s report.Sink) bool { return s == report.Sink(g.decisions) })
		all = append(all, &news{to: g.decisions, lost: func() uint64 { return g.decisions.Stats().Lost }, most: maxNews})
	}
	if g.reports == nil {
		return all, nil
	}
	return slices.DeleteFunc(all, func(s report.Sink) bool { return s == report.Sink(g.reports) }), g.reports
}

// unasked are the policies that a scan does not evaluate: their results from admission stay.
func (g *assembly) unasked() []result.Policy {
	left, err := g.scanned.LeftOut(context.Background())
	if err != nil {
		return nil // no scan has started
	}
	list := make([]result.Policy, len(left))
	for i, each := range left {
		list[i] = result.Policy{Kind: each.Policy.Kind, Namespace: each.Policy.Namespace, Name: each.Policy.Name}
	}
	return list
}

// busy reports whether admission requests wait, or will soon, or reports wait to be written.
func (g *assembly) busy() bool {
	return g.reports != nil && g.reports.Busy() || g.queue.Waiting() > 0 || g.queue.Working() > int64(g.configuration.Limits.Requests/busyPart)
}

// scopesKey is derived from the replicas' key, because its results are visible elsewhere.
func scopesKey(key []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, key, nil, "quaymaster credential scopes", sha256.Size)
}
