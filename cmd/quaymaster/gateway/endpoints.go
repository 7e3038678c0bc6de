package gateway

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/endpoints"
	"github.com/quaymaster/quaymaster/gateway/replicas"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

// serving holds the server, and the endpoints behind it.
type serving struct {
	endpoints *endpoints.Set // nil without the role admission
	queue     *admission.Queue
	server    *webhook.Server
	socket    *endpoints.Socket // nil unless there is one
}

// address is the address of the endpoints, once the server listens; empty where there are none.
func (s *serving) address() string {
	if at := s.server.Address(); at != nil {
		return at.String()
	}
	return ""
}

// activate has the endpoints serve.
func (s *serving) activate(handlers map[string]http.Handler) error {
	for path, handler := range handlers {
		if err := s.endpoints.Activate(path, handler); err != nil {
			return err
		}
	}
	return nil
}

// newServer makes the server, with inactive endpoints; there are none without admission.
func (g *assembly) newServer(context.Context) error {
	c := g.configuration
	served, err := g.newEndpoints()
	if err != nil {
		return err
	}
	g.serving.queue, err = admission.NewQueue(admission.QueueBounds{Requests: int64(c.Limits.Requests)})
	if err != nil {
		return err
	}
	requirements := g.group.Requirements()
	if c.Has(config.RoleAdmission) {
		requirements = append(slices.Clip(requirements), gateway.Requirement{Name: "endpoints", Why: "the endpoints are not ready", Met: g.open})
	}
	checks := endpoints.Checks(g.certificates.Ready, requirements)
	if err := g.metrics.Watch(g.readings(checks)); err != nil {
		return err
	}
	options := []webhook.Option{webhook.WithObserver(g.observers), webhook.WithDrainDelay(time.Duration(c.Listen.DrainDelay))}
	if c.Listen.Profiling != "" {
		options = append(options, webhook.WithProfiling(c.Listen.Profiling))
	}
	g.serving.server, err = webhook.New(webhook.Config{
		Address: c.Listen.Address, Plain: c.Listen.Plain, Certificates: g.certificates, Endpoints: served, Checks: checks,
		Metrics: g.metrics.Handler(), Log: g.log,
	}, options...)
	return err
}

// newEndpoints makes the inactive endpoints.
func (g *assembly) newEndpoints() (map[string]webhook.Endpoint, error) {
	c := g.configuration
	if !c.Has(config.RoleAdmission) {
		return nil, nil
	}
	var internal []string
	if g.around.Cluster != nil {
		internal = append(internal, peers.Path)
		if g.records.Pages != nil {
			internal = append(internal, peers.ViewPath)
		}
	}
	g.serving.endpoints = endpoints.NewSet(c.Paths(), internal...)
	callers, err := newCallers(c.Listen)
	if err != nil {
		return nil, err
	}
	return g.serving.endpoints.Served(callers, c.Listen.ClientEndpoints), nil
}

// newCallers accepts the client certificates that the settings require; nil for none.
func newCallers(l config.Listen) (*webhook.Callers, error) {
	if l.ClientCA == "" {
		return nil, nil
	}
	authorities, err := os.ReadFile(l.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("listen.clientCA: %w", err)
	}
	callers, err := webhook.NewCallers(authorities, l.ClientNames...)
	if err != nil {
		return nil, fmt.Errorf("listen.clientCA %s: %w", l.ClientCA, err)
	}
	return callers, nil
}

// openEndpoints waits for all preconditions of decisions, and activates the endpoints. Until ctx
// ends it keeps this replica among the others. Without admission there are no endpoints, but other
// decisions have the same preconditions.
func (g *assembly) openEndpoints(ctx context.Context) error {
	key, ok := g.certificates.Key(ctx)
	if !ok {
		return nil
	}
	admits := g.configuration.Has(config.RoleAdmission)
	if admits && g.shared.replicas != nil {
		if err := g.shared.replicas.Join(peerAddress(g.configuration.Peers, g.options, g.serving.server.Address())); err != nil {
			return err
		}
	}
	made, err := g.engine(key)
	if err != nil {
		return err
	}
	var active handlers
	if admits {
		if err := g.shared.claims.Restore(ctx, made, key); err != nil {
			return err
		}
		active, err = g.newHandlers(made, key)
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
	g.workloads.engines.admission = made
	if err := g.serving.activate(active.byPath); err != nil {
		return err
	}
	g.compareVerdicts(ctx, key)
	close(g.open)
	if g.serving.socket != nil {
		g.serving.socket.Activate(config.APIPath, active.socket)
	}
	if admits {
		g.log.Info("ready")
	} else {
		g.log.Info("ready; admission endpoints disabled (role admission not set)")
	}
	if g.options.Listening != nil {
		g.options.Listening(g.serving.address(), g.serving.server.PlainAddress().String())
	}
	if g.shared.replicas != nil {
		g.shared.replicas.Run(ctx)
	}
	return nil
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
	if g.shared.replicas != nil {
		client, err := g.shared.replicas.Client(key)
		if err != nil {
			return nil, err
		}
		if client != nil {
			g.group.OnClose(client.Close)
			options = append(options, gate.WithPeers(client))
		}
	}
	made, opened, err := g.workloads.engines.forAdmission(key, options...)
	if err == nil {
		g.documents.Images.Use(gate.Config{Registries: opened, State: g.state})
	}
	return made, err
}

// readings are the values of gauges.
func (g *assembly) readings(checks []webhook.Check) metrics.Readings {
	readings := metrics.Readings{
		Roles: strings.Join(rolesOf(g.configuration), ","), Ready: endpoints.AllReady(checks),
		Working: g.serving.queue.Working, Waiting: g.serving.queue.Waiting, WaitingForShare: g.serving.queue.WaitingForShare,
		RegistriesLimited: g.workloads.engines.limiter.Limited, RegistriesKept: g.workloads.engines.limiter.Kept,
		TrustAge: g.trust.Age, TrustExpires: g.trust.Ends, StaleKeys: g.trust.StaleKeys, UnreadRoots: g.documents.UnreadRoots,
		CertificateExpires: g.certificates.Expires, AuthorityExpires: g.certificates.AuthorityExpires,
		Overrides: g.documents.Overrides,
	}
	if g.configuration.Trust.Refresh {
		readings.TrustFailed = func() bool { return g.trust.Store.Status().Err != nil }
	}
	if g.documents.Globals != nil {
		readings.GlobalContext = g.documents.Globals.Known
	}
	if g.records.Reports != nil {
		readings.ReportsPending = g.records.Reports.Pending
	}
	if g.around.Cluster != nil {
		g.readCluster(&readings)
	}
	return readings
}

// readCluster adds the readings of a gateway in a cluster.
func (g *assembly) readCluster(readings *metrics.Readings) {
	if g.records.BreakGlass != nil {
		readings.OpenNamespaces = g.records.OpenNamespaces
	}
	readings.CredentialsHeld = g.around.Cluster.Held.Served
	leads := g.around.Cluster.Leader.Leads
	readings.Lease, readings.Leads = g.configuration.Lease(), leads
	if g.around.Cluster.Events != nil {
		readings.EventsDropped = g.around.Cluster.Events.Dropped
	}
	if g.configuration.Has(config.RoleAdmission) && !g.configuration.Webhooks.Disabled {
		readings.ConfigurationsKept = func() time.Time {
			if !leads() {
				return time.Time{}
			}
			return g.webhooks.Reconciled()
		}
	}
	readings.ScanInterval = func() time.Duration {
		if g.configuration.Scan.Disabled || !g.configuration.Has(config.RoleScan) {
			return 0
		}
		return time.Duration(g.configuration.Scan.Interval)
	}
}

// rolesOf returns the roles of this process.
func rolesOf(c config.Configuration) []string {
	if c.Roles == nil {
		return slices.DeleteFunc(config.Roles(), func(role string) bool { return !c.Has(role) })
	}
	return c.Roles
}
