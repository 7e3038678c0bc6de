package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/document"
	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify/trust"
	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/admission"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/webhook/peers"
)

// Options are what the process gives the gateway.
type Options struct {
	// Log is where the log goes; required.
	Log io.Writer
	// Version and Revision name the program; Version is required.
	Version, Revision string
	// Replica names this process among the replicas: the pod's name. Address is
	// where the others reach it, without the port; may be empty.
	Replica, Address string
	// Listening is told the addresses once the gateway listens; may be nil.
	Listening func(doors, plain string)
}

// Gateway is everything that runs, wired.
type Gateway struct {
	configuration Configuration
	options       Options
	log           *slog.Logger
	metrics       *metrics.Metrics
	state         *gate.Current
	trust         *trust.Store
	certificates  *certificates
	policies      *policies
	around        surroundings
	cluster       *inTheCluster // nil when running standalone
	tasks         []task
}

// inTheCluster is what only a gateway in a cluster has.
type inTheCluster struct {
	client  *cluster.Client
	lookups *cluster.Lookups
	members *lease.Members
	leader  *lease.Leader
	events  *record.Events
}

// Run wires the gateway and runs it until ctx ends and what is at work is done.
func Run(ctx context.Context, c Configuration, o Options) error {
	log, err := newLogger(c.Log, o.Log)
	if err != nil {
		return err
	}
	g := &Gateway{
		configuration: c, options: o, log: log, state: &gate.Current{},
		metrics: metrics.New(metrics.Build{Version: o.Version, Revision: o.Revision}),
	}
	for _, step := range []func(context.Context) error{g.reach, g.certify, g.read, g.open} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return g.serve(ctx)
}

// reach prepares what is asked of the cluster, or of files in its place.
func (g *Gateway) reach(context.Context) error {
	if g.configuration.Standalone {
		g.around = inFiles(newFiles())
		return nil
	}
	k := g.configuration.Kubernetes
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: k.Kubeconfig, QPS: float64(k.QPS), Burst: k.Burst, Version: g.options.Version})
	if err != nil {
		return fmt.Errorf("the cluster cannot be reached (to run without one, set standalone: true): %w", err)
	}
	lookups, err := cluster.NewLookups(cluster.LookupOptions{Client: client.Typed, TTL: time.Duration(g.configuration.Ages.Secret)})
	if err != nil {
		return err
	}
	namespaces, err := cluster.NewNamespaces(cluster.NamespaceOptions{Client: client.Metadata, Failed: g.failed("namespaces cannot be watched")})
	if err != nil {
		return err
	}
	roles, err := cluster.NewRoles(cluster.RoleOptions{Client: client.Typed, Failed: g.failed("role bindings cannot be watched")})
	if err != nil {
		return err
	}
	g.cluster = &inTheCluster{client: client, lookups: lookups}
	g.around = inCluster(lookups, namespaces, roles)
	g.tasks = append(g.tasks, forever("namespaces", namespaces.Run), forever("roles", roles.Run))
	return g.record()
}

// record prepares the writing of events.
func (g *Gateway) record() error {
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
	g.tasks = append(g.tasks, forever("events", events.Run))
	return nil
}

// certify gets the certificate and the replicas' key.
func (g *Gateway) certify(ctx context.Context) error {
	var client *cluster.Client
	if g.cluster != nil {
		client = g.cluster.client
	}
	made, err := newCertificates(g.configuration, client, g.log)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	g.certificates = made
	g.tasks = append(g.tasks, made.tasks...)
	return made.wait(ctx, g.log)
}

// read prepares policies and trust.
func (g *Gateway) read(context.Context) error {
	store, err := newTrust(g.configuration.Trust, g.around.keys)
	if err != nil {
		return err
	}
	g.trust = store
	g.tasks = append(g.tasks, task{name: "trust", run: func(ctx context.Context) error { return followTrust(ctx, store, g.state, g.log) }})
	if g.configuration.Trust.Refresh {
		g.tasks = append(g.tasks, forever("trust refresh", func(ctx context.Context) {
			_ = store.Refresh(ctx, g.failed("the trusted root cannot be refreshed")) // it ends with ctx
		}))
	}
	found, err := newCatalog(g.configuration, g.around)
	if err != nil {
		return err
	}
	g.policies = &policies{catalog: found, state: g.state, metrics: g.metrics, log: g.log, changed: make(chan struct{}, 1)}
	if g.cluster != nil {
		if err := g.watch(); err != nil {
			return err
		}
	}
	return g.follow()
}

// watch prepares the watching of the cluster's policies.
func (g *Gateway) watch() error {
	p, client := g.policies, g.cluster.client
	p.inCluster = &atomic.Bool{}
	if g.cluster.events != nil {
		p.events = g.cluster.events
	}
	if g.configuration.Policies.WriteStatus {
		status, err := record.NewStatus(record.StatusOptions{Client: client.Dynamic, Failed: g.failed("the status of a policy was not written")})
		if err != nil {
			return err
		}
		p.status = status
		g.tasks = append(g.tasks, forever("status", status.Run))
	}
	watcher, err := document.New(document.Options{
		Kinds: documentKinds(), Dynamic: client.Dynamic, Metadata: client.Metadata, Definitions: client, Consumer: p, Observer: p,
	})
	if err != nil {
		return err
	}
	g.tasks = append(g.tasks, forever("policies", watcher.Run))
	return nil
}

// follow loads the folders with policies.
func (g *Gateway) follow() error {
	if len(g.configuration.Policies.Folders) == 0 {
		return nil
	}
	g.policies.inFolders = &atomic.Bool{}
	into, _ := g.around.namespaces.(*files) // in a cluster, what policies look up is there
	follow, err := g.policies.watchFolders(g.configuration.Policies.Folders, into)
	if err != nil {
		return err
	}
	g.tasks = append(g.tasks, follow)
	return nil
}

// open prepares replicas and leadership.
func (g *Gateway) open(context.Context) error {
	if g.cluster == nil {
		return nil
	}
	leader, err := lease.NewLeader(lease.LeaderOptions{
		Client: g.cluster.client.Leases, Namespace: g.configuration.Namespace, Name: "quaymaster", Identity: g.options.Replica,
	})
	if err != nil {
		return err
	}
	g.cluster.leader = leader
	address := g.peerAddress()
	if g.configuration.Peers.Disabled || address == "" {
		return nil
	}
	members, err := lease.NewMembers(lease.MembersOptions{
		Client: g.cluster.client.Leases, Namespace: g.configuration.Namespace, Identity: g.options.Replica, Address: address,
		Failed: g.failed("the replicas cannot be told apart"),
	})
	if err != nil {
		return err
	}
	g.cluster.members = members
	g.tasks = append(g.tasks, forever("replicas", members.Run))
	return nil
}

// peerAddress is where other replicas reach this one; empty if nowhere.
func (g *Gateway) peerAddress() string {
	if g.configuration.Peers.Address != "" {
		return g.configuration.Peers.Address
	}
	if g.options.Address == "" {
		return ""
	}
	port := g.configuration.Listen.Address[strings.LastIndexByte(g.configuration.Listen.Address, ':'):]
	if strings.Contains(g.options.Address, ":") {
		return "[" + g.options.Address + "]" + port
	}
	return g.options.Address + port
}

// failed logs what goes on in spite of an error.
func (g *Gateway) failed(what string) func(error) {
	return func(err error) {
		if err != nil && !errors.Is(err, context.Canceled) {
			g.log.Warn(what, slog.String("error", err.Error()))
		}
	}
}

// serve makes the engine and its doors, and runs everything.
func (g *Gateway) serve(ctx context.Context) error {
	observers := metrics.Observers{g.metrics}
	if g.configuration.Traces.Endpoint != "" {
		tracer, err := metrics.NewTracer(ctx, metrics.TracerConfig{
			Endpoint: g.configuration.Traces.Endpoint, Build: metrics.Build{Version: g.options.Version, Revision: g.options.Revision}, Log: g.log,
		})
		if err != nil {
			return fmt.Errorf("traces: %w", err)
		}
		defer func() {
			delivery, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
			defer cancel()
			_ = tracer.Close(delivery) // what is not delivered by then is lost, and nothing else
		}()
		observers = append(observers, tracer)
	}
	engine, asked, err := g.engine(observers)
	if err != nil {
		return err
	}
	if asked != nil {
		defer asked.Close()
	}
	server, err := g.server(engine, observers)
	if err != nil {
		return err
	}
	if err := server.Listen(ctx); err != nil {
		return err
	}
	if g.options.Listening != nil {
		g.options.Listening(server.Address().String(), server.PlainAddress().String())
	}
	return runAll(ctx, task{name: "doors", run: server.Run}, g.tasks)
}

// engine makes the gate, with its view of registries and of other replicas.
func (g *Gateway) engine(observers metrics.Observers) (*gate.Gate, *peers.Client, error) {
	client, err := newClient(g.configuration.Registries, g.metrics.RegistryAnswered)
	if err != nil {
		return nil, nil, err
	}
	chain, err := newKeychain(g.configuration.Registries, client, g.around, g.certificates.own.PeerKey())
	if err != nil {
		return nil, nil, err
	}
	options := []gate.Option{gate.WithObserver(observers)}
	asked, err := g.peers()
	if err != nil {
		return nil, nil, err
	}
	if asked != nil {
		options = append(options, gate.WithPeers(asked))
	}
	engine, err := newGate(g.configuration, registries{chain}, g.state, options...)
	return engine, asked, err
}

// peers makes the client of other replicas; nil where there are none to ask.
func (g *Gateway) peers() (*peers.Client, error) {
	if g.cluster == nil || g.cluster.members == nil {
		return nil, nil
	}
	options := []peers.Option{peers.WithFailures(func(member string, err error) {
		g.log.Debug("a replica could not be asked", slog.String("member", member), slog.String("error", err.Error()))
	})}
	if host := hostOf("https://" + g.peerAddress()); host == "127.0.0.1" || host == "::1" {
		options = append(options, peers.WithLoopback())
	}
	return peers.New(peers.Config{
		Key: g.certificates.own.PeerKey(), Members: others{g.cluster.members}, Roots: g.certificates, ServerName: servingName(g.configuration),
	}, options...)
}

// others are the addresses of the other replicas.
type others struct{ members *lease.Members }

// Others implements peers.Members.
func (o others) Others() []string {
	var list []string
	for _, member := range o.members.Others() {
		list = append(list, member.Address)
	}
	return list
}

// server makes the doors and what leads to them.
func (g *Gateway) server(engine *gate.Gate, observers metrics.Observers) (*webhook.Server, error) {
	queue, err := admission.NewQueue(admission.QueueBounds{Requests: int64(g.configuration.Limits.Requests)})
	if err != nil {
		return nil, err
	}
	told := recorder{log: g.log, metrics: g.metrics}
	if g.cluster != nil && g.cluster.events != nil {
		told.events = g.cluster.events
	}
	options := []admission.Option{admission.WithRecorder(told), admission.WithQueue(queue)}
	if g.around.roles != nil {
		options = append(options, admission.WithRoles(g.around.roles))
	}
	doors, err := newDoors(g.configuration, admission.Config{
		Decider: engine, Namespaces: g.around.namespaces, Failure: failure{g.state},
	}, g.policies.catalog, options...)
	if err != nil {
		return nil, err
	}
	if g.cluster != nil {
		if err := peerDoor(doors, g.certificates.own.PeerKey(), engine); err != nil {
			return nil, err
		}
		g.tasks = append(g.tasks, g.lead())
	}
	if err := g.metrics.Watch(g.readings(queue)); err != nil {
		return nil, err
	}
	with := []webhook.Option{webhook.WithObserver(observers), webhook.WithDrainDelay(time.Duration(g.configuration.Listen.DrainDelay))}
	if g.configuration.Listen.Profiling != "" {
		with = append(with, webhook.WithProfiling(g.configuration.Listen.Profiling))
	}
	return webhook.New(webhook.Config{
		Address: g.configuration.Listen.Address, Plain: g.configuration.Listen.Plain,
		Certificates: g.certificates, Doors: doors, Metrics: g.metrics.Handler(), Log: g.log,
		Checks: []webhook.Check{{Name: "policies-and-trust", Ready: g.state.Ready}, {Name: "certificate", Ready: g.certificates.Ready}},
	}, with...)
}

// readings are the numbers that metrics show as they are.
func (g *Gateway) readings(queue *admission.Queue) metrics.Readings {
	readings := metrics.Readings{
		Working: queue.Working, Waiting: queue.Waiting,
		TrustAge:           func() time.Duration { return time.Since(g.trust.Status().Loaded) },
		CertificateExpires: g.certificates.Expires,
	}
	if g.cluster != nil && g.cluster.events != nil {
		readings.EventsDropped = g.cluster.events.Dropped
	}
	return readings
}

// lead is what one replica does for all: it keeps the webhook configurations, and
// clears away what replicas that are gone left behind.
func (g *Gateway) lead() task {
	return task{name: "leader", run: func(ctx context.Context) error {
		return g.cluster.leader.Run(ctx, func(ctx context.Context) {
			g.log.Info("this replica leads")
			if g.cluster.members != nil {
				go g.cluster.members.Sweep(ctx)
			}
			if g.configuration.Webhooks.Disabled {
				<-ctx.Done()
				return
			}
			g.configure(ctx)
		})
	}}
}

// configure keeps the webhook configurations until ctx ends.
func (g *Gateway) configure(ctx context.Context) {
	kept := &webhooks{
		settings: g.configuration.Webhooks, namespace: g.configuration.Namespace, client: g.cluster.client,
		bundle: g.certificates.Bundle, policies: g.activePolicies, documents: documentResources(),
	}
	if !g.known(ctx) {
		return
	}
	changed := make(chan struct{}, 1)
	go g.notice(ctx, changed)
	reconciler, err := kept.reconciler(changed, g.log)
	if err != nil {
		g.log.Error("the webhook configurations cannot be kept", slog.String("error", err.Error()))
		return
	}
	reconciler.Run(ctx)
}

// activePolicies are the current ones; nil until they are known.
func (g *Gateway) activePolicies() *policy.Set {
	now, err := g.state.Snapshot(context.Background())
	if err != nil {
		return nil
	}
	return now.Policies
}

// known waits until policies and trust are there; false if ctx ended first.
func (g *Gateway) known(ctx context.Context) bool {
	for g.state.Ready() != nil {
		select {
		case <-ctx.Done():
			return false
		case <-g.policies.changed:
		case <-time.After(time.Second): // trust comes without a word
		}
	}
	return true
}

// notice passes on that policies or the certificate's authorities changed.
func (g *Gateway) notice(ctx context.Context, changed chan<- struct{}) {
	for {
		certified := g.certificates.Changed()
		select {
		case <-ctx.Done():
			return
		case <-g.policies.changed:
		case <-certified:
		}
		select {
		case changed <- struct{}{}:
		default:
		}
	}
}

// Replica names this process where nobody else does.
func Replica() string {
	if host, err := os.Hostname(); err == nil && host != "" {
		return fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	return fmt.Sprintf("gateway-%d", os.Getpid())
}
