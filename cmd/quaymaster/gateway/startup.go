package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cache/snapshot"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/config"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/documents"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/lookups"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/gateway/reporting"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/certificates"
	"github.com/quaymaster/quaymaster/gateway/endpoints"
	"github.com/quaymaster/quaymaster/gateway/mirrors"
	"github.com/quaymaster/quaymaster/gateway/snapshots"
	"github.com/quaymaster/quaymaster/gateway/trust"
	"github.com/quaymaster/quaymaster/gateway/webhooks"
	"github.com/quaymaster/quaymaster/scan"
	"github.com/quaymaster/quaymaster/webhook/metrics"
	"github.com/quaymaster/quaymaster/webhook/trace"
)

// Options are the process's inputs to the gateway.
type Options struct {
	// Log receives the log; required.
	Log io.Writer
	// Version and Revision name the program; Version is required.
	Version, Revision string
	// Replica is the name of this process among the replicas: the pod's name. Address is its
	// address for the others, without the port; may be empty.
	Replica, Address string
	// Listening is called with the addresses once the endpoints are active: the certificate, the
	// policies and the trust are loaded. May be nil.
	Listening func(endpoints, plain string)
	// Dashboard is called with the dashboard's address once it is served. May be nil.
	Dashboard func(address string)
	// DryVerdicts bounds the comparison of verdicts on running workloads with those of the
	// previous version, before the gateway is ready; zero disables it. Verdicts receives the
	// differences; may be nil.
	DryVerdicts time.Duration
	Verdicts    io.Writer
	// Logger is called with the logger before anything runs, for libraries that log by
	// themselves. May be nil.
	Logger func(*slog.Logger)
}

// ConfigurationError means that nothing was started, because the configuration is invalid.
type ConfigurationError struct{ Err error }

// Error implements error.
func (e *ConfigurationError) Error() string { return "configuration: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *ConfigurationError) Unwrap() error { return e.Err }

// Run wires the gateway and runs it until ctx ends and pending requests are done. A
// *ConfigurationError means that nothing was started.
func Run(ctx context.Context, c config.Configuration, o Options) error {
	g, err := newAssembly(ctx, c, o)
	if err != nil {
		return &ConfigurationError{Err: err}
	}
	defer g.close()
	return g.run(ctx)
}

// assembly holds all composed components.
type assembly struct {
	configuration config.Configuration
	options       Options
	telemetry
	state        *gate.Current
	workloads    *workloads
	trust        *trust.Binding
	certificates *certificates.Certificates
	documents    *documents.Documents
	around       lookups.Lookups
	shared       shared
	webhooks     *webhooks.Controller // nil when running standalone
	records      *reporting.Records
	serving      serving
	// open is closed when the requirements of the group are met.
	open  chan struct{}
	group gateway.Group
}

// telemetry receives the log, the metrics and the traces of all components.
type telemetry struct {
	log       *slog.Logger
	metrics   *metrics.Metrics
	observers metrics.Observers // of requests
}

// newAssembly composes the components in the order of start-up; run opens the endpoints after them.
func newAssembly(ctx context.Context, c config.Configuration, o Options) (*assembly, error) {
	if o.Log == nil || o.Version == "" {
		return nil, errors.New("the gateway wants a log and a version")
	}
	log, err := newLogger(c.Log, o.Log)
	if err != nil {
		return nil, err
	}
	if o.Logger != nil {
		o.Logger(log)
	}
	g := &assembly{
		configuration: c, options: o, state: &gate.Current{}, open: make(chan struct{}),
		telemetry: telemetry{log: log, metrics: metrics.New(metrics.Build{Version: o.Version, Revision: o.Revision})},
	}
	for _, prepare := range []func(context.Context) error{
		g.connect, g.loadCertificates, g.loadTrust, g.loadDocuments, g.newEngines, g.startTelemetry, g.record, g.newServer,
	} {
		if err := prepare(ctx); err != nil {
			g.close()
			return nil, err
		}
	}
	if err := g.addLeaderComponents(); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// close stops components that do not end with a context.
func (g *assembly) close() {
	g.group.Close()
}

// connect prepares the look-ups in the cluster, or in files instead.
func (g *assembly) connect(context.Context) (err error) {
	g.around, err = lookups.Connect(lookups.Options{
		Configuration: g.configuration, Version: g.options.Version, Replica: g.options.Replica, Group: &g.group, Log: g.log,
	})
	return err
}

// loadDocuments loads the policies and mirrors.
func (g *assembly) loadDocuments(context.Context) (err error) {
	g.documents, err = documents.Load(documents.Config{
		Configuration: g.configuration, Around: g.around, State: g.state, Group: &g.group, Metrics: g.metrics, Log: g.log,
	})
	return err
}

// loadCertificates selects the source of the certificate and of the replicas' key.
func (g *assembly) loadCertificates(context.Context) error {
	made, err := newCertificates(g.configuration, g.around.Cluster, &g.group, g.log)
	if err != nil {
		return fmt.Errorf("certificate: %w", err)
	}
	g.certificates = made
	if g.around.Cluster != nil {
		g.group.Add("certificate's Secret", gateway.Loop(func(ctx context.Context) {
			made.FollowSecret(ctx, g.around.Cluster.Client.Typed.CoreV1().Secrets(g.configuration.Namespace), g.configuration.Certificate.Secret, g.log)
		}))
	}
	return nil
}

// loadTrust loads the trust for signatures.
func (g *assembly) loadTrust(context.Context) error {
	store, err := newTrust(g.configuration.Trust, g.around.Keys)
	if err != nil {
		return err
	}
	g.trust = trust.New(store, g.state, proverOf, g.log)
	g.group.Require("trust", "the trusted roots and keys are not loaded yet", g.trust)
	g.group.Add("trust", gateway.Func(g.trust.Run))
	if g.configuration.Trust.Refresh {
		g.group.Add("trust refresh", gateway.Loop(func(ctx context.Context) {
			_ = store.Refresh(ctx, gateway.Warn(g.log, "the trusted root cannot be refreshed")) // it ends with ctx
		}))
	}
	return nil
}

// newEngines prepares the registry client, and the evaluation of running workloads.
func (g *assembly) newEngines(context.Context) error {
	made, err := newEngines(g.configuration, g.around, g.state, g.metrics.RegistryAnswered)
	if err != nil {
		return err
	}
	g.group.OnClose(made.registry.Close)
	made.targets, err = mirrors.NewTargets(made.registry.Ping, g.metrics, g.log, g.documents.Mirrors.StatusChanged())
	if err != nil {
		return err
	}
	g.group.OnClose(made.targets.Close)
	g.workloads = &workloads{
		configuration: g.configuration, version: g.options.Version, engines: made, view: scan.NewView(g.state), again: make(chan struct{}, 1),
		busy: func() bool {
			return g.records.Reports != nil && g.records.Reports.Busy() ||
				g.serving.queue.Waiting() > 0 || g.serving.queue.Working() > int64(g.configuration.Limits.Requests/busyPart)
		},
	}
	return nil
}

// startTelemetry prepares traces.
func (g *assembly) startTelemetry(ctx context.Context) error {
	g.observers = metrics.Observers{g.metrics}
	if g.configuration.Traces.Endpoint == "" {
		return nil
	}
	tracer, err := trace.New(ctx, trace.Config{
		Endpoint: g.configuration.Traces.Endpoint, Version: g.options.Version, Log: g.log,
	})
	if err != nil {
		return err
	}
	g.group.OnClose(func() {
		delivery, cancel := context.WithTimeout(context.WithoutCancel(ctx), deliveryTimeout)
		defer cancel()
		_ = tracer.Close(delivery) // undelivered traces are lost, and nothing else
	})
	g.observers = append(g.observers, tracer)
	return nil
}

// record keeps verified claims and decisions.
func (g *assembly) record(ctx context.Context) (err error) {
	g.records, err = reporting.New(ctx, reporting.Options{
		Configuration: g.configuration, Version: g.options.Version, Replica: g.options.Replica, Writer: cmp.Or(g.options.Replica, Replica()),
		Cluster: g.around.Cluster, Certificates: g.certificates, Documents: g.documents, Scanned: g.workloads.view, ScanAgain: g.workloads.again, Open: g.open,
		Dashboard: g.options.Dashboard, Group: &g.group, Metrics: g.metrics, Log: g.log,
	})
	if err != nil {
		return err
	}
	if g.configuration.Has(config.RoleAdmission) {
		g.shared.claims = snapshots.New(snapshots.Config{
			Store:    func() (snapshot.Store, error) { return snapshotStore(g.configuration, g.around.Cluster) },
			Interval: time.Duration(g.configuration.Snapshot.Interval), Open: g.open, Log: g.log,
		})
		g.group.Add("snapshot", g.shared.claims)
	}
	return g.records.Publish()
}

// deliveryTimeout bounds the delivery of the last traces.
const deliveryTimeout = 5 * time.Second

// run starts serving: the plain server immediately, so that probes get a response while the API
// server is unavailable, and the endpoints when their preconditions are met.
func (g *assembly) run(ctx context.Context) error {
	g.log.Info("start", slog.String("version", g.options.Version), slog.String("revision", g.options.Revision),
		slog.String("roles", strings.Join(rolesOf(g.configuration), ",")), slog.String("mode", g.configuration.Mode),
		slog.String("replica", g.options.Replica), slog.Bool("standalone", g.configuration.Standalone),
		slog.Int("processors", runtime.GOMAXPROCS(0)), slog.String("memoryLimit", memoryLimit()))
	if err := g.serving.server.Listen(ctx); err != nil {
		return err
	}
	if at := g.configuration.Listen.Socket; at != "" && g.configuration.Has(config.RoleAdmission) {
		made, err := endpoints.ListenSocket(ctx, at)
		if err != nil {
			return err
		}
		g.serving.socket = made
		g.group.Add("socket", made)
	}
	g.log.Info("listening", slog.String("endpoints", g.serving.address()), slog.String("plain", g.serving.server.PlainAddress().String()))
	g.group.Add("endpoints", gateway.Func(g.openEndpoints))
	return g.group.Run(ctx, gateway.Front{Run: g.serving.server.Run, Open: g.open})
}

// memoryLimit is the value of GOMEMLIMIT.
func memoryLimit() string {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return "none"
	}
	return fmt.Sprintf("%d MiB", limit>>20)
}

// Replica returns the default name of this process. It is valid as the name of a Lease.
func Replica() string {
	host, err := os.Hostname()
	if err != nil {
		host = ""
	}
	host = strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, strings.ToLower(host)), "-")
	if host == "" {
		host = "gateway"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
