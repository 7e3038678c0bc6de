package gateway

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/endpoints"
	"github.com/quaymaster/quaymaster/gateway/replicas"
	"github.com/quaymaster/quaymaster/gateway/reporting"
	generated "github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/peers"
	"github.com/quaymaster/quaymaster/webhook/probe"
)

// checkOf converts a requirement for /readyz.
func checkOf(r gateway.Requirement) webhook.Check {
	return webhook.Check{Name: r.Name, Ready: func() error {
		select {
		case <-r.Met:
			return nil
		default:
			return errors.New(r.Why)
		}
	}}
}

// newServer makes the server with the placeholders of the endpoints.
func (g *assembly) newServer(context.Context) error {
	places, err := g.build()
	if err != nil {
		return err
	}
	g.queue, err = newQueue(g.configuration.Limits)
	if err != nil {
		return err
	}
	if err := g.metrics.Watch(g.readings()); err != nil {
		return err
	}
	g.server, err = listeners(g.configuration.Listen, webhook.Config{
		Certificates: g.certificates, Endpoints: places, Metrics: g.metrics.Handler(), Log: g.log, Checks: g.checks(),
	}, g.observers)
	return err
}

// build makes the placeholders; there are none without admission.
func (g *assembly) build() (map[string]webhook.Endpoint, error) {
	if !g.configuration.Has(config.RoleAdmission) {
		return nil, nil
	}
	g.entrances = map[string]*endpoints.Placeholder{}
	open := g.configuration.Endpoints.Paths()
	for _, path := range open {
		g.entrances[path] = &endpoints.Placeholder{}
	}
	if g.cluster != nil {
		g.entrances[peers.Path] = &endpoints.Placeholder{}
		if g.records.Pages != nil {
			g.entrances[peers.ViewPath] = &endpoints.Placeholder{}
		}
	}
	places := map[string]webhook.Endpoint{}
	for path, entrance := range g.entrances {
		places[path] = webhook.Endpoint{Handler: entrance, Below: path == configuration.ProbePath}
	}
	return places, requireCertificates(g.configuration.Listen, open, places)
}

// checks are the checks of /readyz.
func (g *assembly) checks() []webhook.Check {
	checks := []webhook.Check{{Name: "certificate", Ready: g.certificates.Ready}}
	for _, r := range g.group.Requirements() {
		checks = append(checks, checkOf(r))
	}
	if g.configuration.Has(config.RoleAdmission) {
		checks = append(checks, checkOf(gateway.Requirement{Name: "endpoints", Why: "the endpoints are not ready", Met: g.open}))
	}
	return checks
}

// openDoors waits for all preconditions of decisions, and activates the endpoints. Until ctx ends
// it keeps this replica among the others. Without admission there are no endpoints, but other
// decisions have the same preconditions.
func (g *assembly) openDoors(ctx context.Context) error {
	key, ok := g.certificates.Key(ctx)
	if !ok {
		return nil
	}
	admits := g.configuration.Has(config.RoleAdmission)
	if admits && g.replicas != nil {
		if err := g.replicas.Join(peerAddress(g.configuration.Peers, g.options, g.server.Address())); err != nil {
			return err
		}
	}
	engine, err := g.engine(key)
	if err != nil {
		return err
	}
	var doors map[string]http.Handler
	if admits {
		if err := g.claims.Restore(ctx, engine, key); err != nil {
			return err
		}
		doors, err = g.doors(engine, key)
		if err != nil {
			return err
		}
	}
	for _, r := range g.group.Requirements() {
		select {
		case <-ctx.Done():
			return nil
		case <-r.Met:
		}
	}
	g.engines.admission = engine
	for path, door := range doors {
		door = g.durable(path, door)
		g.entrances[path].Handler.Store(&door)
	}
	g.compareVerdicts(ctx, key)
	close(g.open)
	if admits {
		g.log.Info("ready")
	} else {
		g.log.Info("ready; admission endpoints disabled (role admission not set)")
	}
	if g.options.Listening != nil {
		g.options.Listening(g.doorsAddress(), g.server.PlainAddress().String())
	}
	if g.replicas != nil {
		g.replicas.Run(ctx)
	}
	return nil
}

// doors makes the handlers of the endpoints.
func (g *assembly) doors(engine *gate.Gate, key []byte) (map[string]http.Handler, error) {
	told := g.recorder()
	records, err := generated.New(key)
	if err != nil {
		return nil, err
	}
	tries, err := g.review(key)
	if err != nil {
		return nil, err
	}
	objects := admission.Config{
		Decider: engine, Namespaces: g.around.Namespaces, Roles: g.around.Roles, Failure: endpoints.Failure{State: g.state}, Recorder: told, Queue: g.queue,
		Copies: endpoints.Copies{State: g.state}, Rules: endpoints.Failure{State: g.state},
		Requesters: endpoints.Requesters{State: g.state, Records: records}, Reproduce: g.reproduce(),
	}
	if g.documents.Kinds != nil {
		objects.Kinds = g.documents.Kinds
	}
	doors, err := newDoors(g.configuration, objects, admission.PolicyConfig{
		Checker: g.checker(), Recorder: told, Queue: g.queue, ImpactAnalysis: tries,
	})
	if err != nil {
		return nil, err
	}
	others, err := g.otherDoors(engine, told)
	if err != nil {
		return nil, err
	}
	maps.Copy(doors, others)
	doors[configuration.ProbePath] = probe.New(configuration.ProbePath)
	if g.cluster == nil {
		return doors, nil
	}
	// The replicas' key authenticates these requests.
	if g.records.Pages != nil {
		doors[peers.ViewPath], err = peers.NewViewHandler(peers.ViewConfig{Key: key, Viewer: g.records.Pages})
		if err != nil {
			return nil, err
		}
	}
	doors[peers.Path], err = peers.NewHandler(peers.HandlerConfig{Key: key, Memory: engine})
	return doors, err
}

// checker returns the checker of documents.
func (g *assembly) checker() endpoints.Checker {
	made := endpoints.Checker{Policies: g.documents.Policies.Catalog, Kyverno: kyvernoOf(g.cluster)}
	if g.documents.Globals != nil { // an interface of a nil pointer would not be nil
		made.Entries = g.documents.Globals
	}
	return made
}

// kyvernoOf returns a check whether Kyverno is installed; nil without a cluster.
func kyvernoOf(in *lookups.Cluster) func() bool {
	if in == nil {
		return nil
	}
	found := cluster.NewKyverno(in.Client.Typed, time.Now)
	return func() bool { return found.Installed(context.Background()) }
}

// recorder returns the recorder of decisions.
func (g *assembly) recorder() reporting.Recorder {
	told := reporting.Recorder{Log: g.log, Strangers: webhook.NewErrorLog(g.log), Metrics: g.metrics, Sinks: g.records.Sinks}
	if g.cluster != nil && g.cluster.Events != nil {
		told.Events = g.cluster.Events
	}
	return told
}

// engine makes the gate of admission, with its view of registries and of other replicas.
func (g *assembly) engine(key []byte) (*gate.Gate, error) {
	options := []gate.Option{gate.WithObserver(g.observers)}
	if g.configuration.SharedMemory.Address != "" {
		settings, err := sharedCache(g.configuration.SharedMemory, g.metrics)
		if err != nil {
			return nil, err
		}
		shared, err := replicas.NewSharedCache(settings, key)
		if err != nil {
			return nil, err
		}
		g.group.OnClose(shared.Close)
		options = append(options, gate.WithStore(shared))
	}
	if g.replicas != nil {
		client, err := g.replicas.Client(key)
		if err != nil {
			return nil, err
		}
		if client != nil {
			g.group.OnClose(client.Close)
			options = append(options, gate.WithPeers(client))
		}
	}
	made, opened, err := g.engines.forAdmission(key, options...)
	if err == nil {
		g.documents.Images.Use(opened)
	}
	return made, err
}
