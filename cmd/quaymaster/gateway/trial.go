package gateway

import (
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/listing"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway/rollout"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/scan/dryrun"
)

// looking holds the inputs of an evaluation of all running workloads, without the decider.
type looking struct {
	key     []byte
	lister  *listing.Lister
	lookups *cluster.Lookups
}

// look prepares an evaluation of running workloads, with a client of its own, so that admission
// does not wait for its requests. end is never nil.
func (g *assembly) look(key []byte) (l looking, end func(), err error) {
	end = func() {}
	k, settings := g.configuration.Kubernetes, g.configuration.Scan
	client, err := cluster.NewClient(cluster.ClientOptions{
		Kubeconfig: k.Kubeconfig, Context: k.Context, QPS: float64(settings.QPS), Burst: max(1, int(settings.QPS)), Version: g.options.Version,
	})
	if err != nil {
		return l, end, err
	}
	l = looking{key: key}
	l.lookups, err = cluster.NewLookups(cluster.LookupOptions{Client: client.Typed, TTL: scanAge(g.configuration.Ages.Secret)})
	if err != nil {
		return l, end, err
	}
	l.lister, err = listing.New(client)
	return l, l.lookups.Close, err
}

// decider makes a decider for a state; it reads the cache of admission first.
func (g *assembly) decider(l looking) func(gate.State) (scan.Decider, func(), error) {
	return func(state gate.State) (scan.Decider, func(), error) { return g.viewDecider(l, scan.NewView(state)) }
}

func (g *assembly) viewDecider(l looking, view *scan.View) (scan.Decider, func(), error) {
	made, ends, err := g.scanEngine(l.key, l.lookups, view)
	end := func() {
		for _, each := range slices.Backward(ends) {
			each()
		}
	}
	if err != nil {
		end()
		return nil, func() {}, err
	}
	return made, end, nil
}

// dryRun makes the evaluation of policies; busy may be nil. end is never nil.
func (g *assembly) dryRun(key []byte, busy func() bool) (made rollout.DryRun, end func(), err error) {
	if g.cluster == nil {
		return nil, func() {}, errors.New("there is no cluster")
	}
	l, end, err := g.look(key)
	if err != nil {
		return nil, end, err
	}
	made, err = dryrun.New(dryrun.Options{
		Cluster: l.lister, Namespaces: g.around.Namespaces, State: g.state, Decider: g.decider(l), Excluded: g.outside(), Busy: busy,
	})
	return made, end, err
}

// outside are the namespaces that the webhooks exclude.
func (g *assembly) outside() []string {
	return append([]string{g.configuration.Namespace}, *g.configuration.Webhooks.ExcludedNamespaces...)
}
