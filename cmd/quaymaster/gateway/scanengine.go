package gateway

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway/audit"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/scan"
)

// scanAge is the lifetime of cached Secrets, service accounts and digests behind tags in a scan:
// long enough for the hundreds of pods of a namespace, which are scanned consecutively.
func scanAge(usual config.Duration) time.Duration { return max(time.Duration(usual), scanAges) }

const (
	scanAges = 5 * time.Minute
	// scanPage bounds the time for one page of objects with possibly only new images.
	scanPage = 10 * time.Minute
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
	around.Credentials, around.Accounts = lookups, lookups
	chain, err := newKeychain(c.Registries, client, around, scopes)
	if err != nil {
		return nil, ends, err
	}
	calm, err := scan.NewPacer(registries{chain}, float64(settings.RegistryQPS))
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

// Recall implements claims.Peers.
func (b besides) Get(_ context.Context, keys []string) map[string][]byte {
	return b.of.Remembered(keys)
}

// busy reports whether admission requests wait, or will soon, or reports wait to be written.
func (g *assembly) busy() bool {
	return g.records.Reports != nil && g.records.Reports.Busy() || g.queue.Waiting() > 0 || g.queue.Working() > int64(g.configuration.Limits.Requests/busyPart)
}

// scopesKey is derived from the replicas' key, because its results are visible elsewhere.
func scopesKey(key []byte) ([]byte, error) {
	return hkdf.Key(sha256.New, key, nil, "quaymaster credential scopes", sha256.Size)
}

// addScan adds the scan of running workloads. It has clients of its own, so that admission does not
// wait for its requests, and its own cache; it reads that of admission first.
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
			made, err := g.openScan(key)
			return made, true, err
		},
		View: g.scanned, Namespaces: g.around.Namespaces,
		Sinks: audit.Sinks{
			All: slices.Concat(g.records.Sinks.Every, g.records.Sinks.Last), Reports: g.records.Reports, Stores: g.records.Stores,
			Decisions: g.records.Decisions, Inventory: g.records.Inventory,
		},
		Interval: time.Duration(settings.Interval), Excluded: settings.ExcludedNamespaces, Follow: g.configuration.Follows(),
		Policies: &g.documents.Policies.Updates, Again: g.scanAgain, Busy: g.busy,
		Memory: audit.NewPositionStore(g.cluster.Client.Leases, g.configuration.Namespace, g.options.Replica), Metrics: g.metrics, Log: g.log,
	}))
}

func (g *assembly) openScan(key []byte) (audit.Source, error) {
	l, end, err := g.look(key)
	if err != nil {
		return audit.Source{Close: end}, err
	}
	decider, closed, err := g.viewDecider(l, g.scanned)
	return audit.Source{Lister: l.lister, Decider: decider, Close: func() { closed(); end() }}, err
}
