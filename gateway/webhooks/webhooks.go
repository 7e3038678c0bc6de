package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/cluster/probe"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/discovery"
	"github.com/quaymaster/quaymaster/gateway/status"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// Config holds the dependencies of a Controller.
type Config struct {
	Settings Settings
	// Disabled leaves the configurations to the user.
	Disabled  bool
	Client    *cluster.Client
	Documents Documents
	// Mirrors returns the active mirrors; nil until they are loaded.
	Mirrors func() *mirror.Set
	// Updates reports changes of policies, mirrors and trusted roots, and Definitions those of
	// CustomResourceDefinitions.
	Updates      gateway.Changing
	Definitions  *gateway.Signal
	Certificates Certificates
	// Natives determines whether a process with the role native is running, which repairs native policies; nil means that
	// none does, so that every policy has its webhook.
	Natives *status.Controllers
	// Readiness receives the results, which are part of the status of policies.
	Readiness *status.Readiness
	Metrics   Metrics
	Log       *slog.Logger
}

// Settings are the settings of the configurations.
type Settings struct {
	// Namespace is that of the gateway, and Owner the ClusterRole of its release.
	Namespace, Owner string
	// URL is the address of the gateway for the API server; empty means the Service in Namespace.
	URL, Service string
	Port         int32
	// FailurePolicy replaces that of policies and mirrors; empty means theirs.
	FailurePolicy      string
	ExcludedNamespaces []string
	Pinning            configuration.Pinning
	BreakGlass, Shadow bool
	// Lifetimes adds the webhook for labels with the lifetime of objects. A shadow has none.
	Lifetimes bool
	// OptIn applies ClusterImagePolicies only in labelled namespaces.
	OptIn bool
}

// Documents are the active policies.
type Documents interface {
	// Active returns them; nil until they are loaded.
	Active() *set.Set
	// Sequence is the number of their set, or of an earlier one.
	Sequence() int64
	// WriteStatus writes the status of policies until ctx ends.
	WriteStatus(ctx context.Context)
}

// Certificates are those of the endpoints.
type Certificates interface {
	gateway.Changing
	// Bundle holds the authorities that the API server trusts.
	Bundle() []byte
}

// Metrics counts the writes of configurations.
type Metrics interface {
	ConfigurationWritten(configuration, reason string)
}

// Controller is the component that keeps the configurations, on the leader.
type Controller struct {
	gateway.OnLeader
	config     Config
	reconciled atomic.Int64 // Unix time in seconds; 0: never
}

// New makes a Controller.
func New(c Config) (*Controller, error) {
	if c.Client == nil || c.Documents == nil || c.Certificates == nil || c.Readiness == nil {
		return nil, errors.New("webhooks: Client, Documents, Certificates and Readiness must not be nil")
	}
	return &Controller{config: c}, nil
}

// Reconciled is the time at which the configurations were last correct; zero for never.
func (c *Controller) Reconciled() time.Time {
	if at := c.reconciled.Load(); at != 0 {
		return time.Unix(at, 0)
	}
	return time.Time{}
}

// Run keeps the configurations until ctx ends. An error is logged, and the gateway continues.
func (c *Controller) Run(ctx context.Context) error {
	config := c.config
	config.Readiness.Begin(!config.Disabled)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { config.Documents.WriteStatus(ctx) })
	if config.Disabled {
		return nil
	}
	changed := make(chan struct{}, 1)
	made := &source{Config: config, reconciled: &c.reconciled}
	reconciler, err := made.reconciler(changed)
	var asks *probe.Prober
	if err == nil {
		asks, err = probe.New(probe.Options{
			Config: config.Client.Config(), Slices: config.Client.Typed.DiscoveryV1(), Namespace: config.Settings.Namespace,
		})
	}
	if err != nil {
		config.Log.Error("the webhook configurations cannot be kept", slog.String("error", err.Error()))
		return nil
	}
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	running.Go(func() { follow(ctx, notify, config.Updates, config.Certificates) })
	running.Go(func() { config.watch(ctx, notify) })
	running.Go(func() { discovery.WatchDefinitions(ctx, config.Definitions, notify) })
	running.Go(func() { config.Readiness.Run(ctx, asks) })
	made.natives.follow(ctx, &running, notify)
	reconciler.Run(ctx)
	return nil
}

// watch reports changes of the webhook configurations, so that a changed or deleted one is
// repaired at once.
func (c Config) watch(ctx context.Context, changed func()) {
	api := c.Client.Typed.AdmissionregistrationV1()
	var both sync.WaitGroup
	both.Go(func() {
		gateway.WatchObject(ctx, api.MutatingWebhookConfigurations(), configuration.Name, c.Log, changed)
	})
	both.Go(func() {
		gateway.WatchObject(ctx, api.ValidatingWebhookConfigurations(), configuration.Name, c.Log, changed)
	})
	both.Wait()
}

// follow reports changes of either until ctx ends.
func follow(ctx context.Context, changed func(), one, other gateway.Changing) {
	first, second := one.Changed(), other.Changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-first:
			first = one.Changed()
		case <-second:
			second = other.Changed()
		}
		changed()
	}
}
