package cleanup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/dynamic"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/background/cleanup"
	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/cluster/typed"
	"github.com/quaymaster/quaymaster/gateway/background"
	"github.com/quaymaster/quaymaster/policy/deletion"
	generated "github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// Config holds the dependencies of a Runner.
type Config struct {
	// Dynamic and Typed share a rate limit that is the component's own.
	Dynamic dynamic.Interface
	Typed   typed.Interface
	// Leases is for the election and the records, in the gateway's own namespace.
	Leases coordination.LeasesGetter
	Settings
	Kinds      background.Kinds
	Policies   cleanup.Policies
	Namespaces cleanup.Namespaces
	// Key waits for the replicas' key, which authenticates the grants of lifetimes; false if the
	// context ended first.
	Key func(context.Context) ([]byte, bool)
	// Open is closed when the preconditions of decisions are met: a candidate needs the policies.
	Open    <-chan struct{}
	Metrics Metrics
	Events  Events                     // nil: none are written
	Record  func(decisionlog.Deletion) // nil: no decision log
	Log     *slog.Logger
}

// Settings are the settings of a Runner.
type Settings struct {
	// Namespace is the gateway's own, and Replica the name of this process.
	Namespace, Replica string
	// Lease is the name of the Lease of the election; empty if the process as a whole leads by it.
	Lease string
	// TTL turns labels for lifetimes on.
	TTL bool
	// Limit is the number of deletions of one run.
	Limit int
	// AllowedKinds and AllowedNamespaces are as in deletion.Protection.
	AllowedKinds      []deletion.Kind
	AllowedNamespaces []string
}

// Runner is the component that deletes objects.
type Runner struct {
	config Config
	leader *lease.Leader // nil: only the leader of the process's own Lease runs the component
}

// New makes a Runner, and returns an error for a missing dependency.
func New(c Config) (*Runner, error) {
	if c.Dynamic == nil || c.Typed == nil || c.Kinds == nil || c.Policies == nil || c.Namespaces == nil || c.Key == nil || c.Metrics == nil || c.Log == nil {
		return nil, errors.New("cleanup: all dependencies but Events and Record are required")
	}
	made := &Runner{config: c}
	if c.Lease == "" {
		return made, nil
	}
	var err error
	made.leader, err = lease.NewLeader(lease.LeaderOptions{Client: c.Leases, Namespace: c.Namespace, Name: c.Lease, Identity: c.Replica})
	if err != nil {
		return nil, fmt.Errorf("cleanup: %w", err)
	}
	return made, nil
}

// Ready implements gateway.Component: no decision waits for it.
func (r *Runner) Ready() <-chan struct{} { return nil }

// NeedLeaderElection implements gateway.Component.
func (r *Runner) NeedLeaderElection() bool { return r.leader == nil }

// Run takes part in the election, and deletes objects while this replica leads, until ctx ends.
func (r *Runner) Run(ctx context.Context) error {
	key, ok := r.config.Key(ctx)
	if !ok {
		return nil
	}
	records, err := generated.New(key)
	if err != nil {
		return err
	}
	if r.leader == nil {
		r.lead(ctx, records)
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-r.config.Open:
	}
	return r.leader.Run(ctx, func(ctx context.Context) { r.lead(ctx, records) })
}

// lead runs the controller of one term.
func (r *Runner) lead(ctx context.Context, records *generated.Keeper) {
	c := r.config
	lacking := make(chan map[string]string, 1)
	options := cleanup.Options{
		Cluster:  &apiServer{Reader: background.NewReader(c.Dynamic, c.Kinds), client: c.Dynamic},
		Access:   &ownAccess{client: c.Typed.AuthorizationV1(), now: time.Now},
		Policies: c.Policies, Namespaces: c.Namespaces, Images: background.ImagesOf(),
		Store:      runStore{client: c.Leases, namespace: c.Namespace, holder: c.Replica},
		Observer:   &observer{log: c.Log, metrics: c.Metrics, events: c.Events, record: c.Record, lacking: lacking},
		Protection: deletion.Protection{Namespace: c.Namespace, AllowedKinds: c.AllowedKinds, AllowedNamespaces: c.AllowedNamespaces},
		Limit:      c.Limit,
	}
	if c.TTL {
		options.Grants = records
	}
	controller, err := cleanup.New(options)
	if err != nil {
		c.Log.Error("nothing is cleaned up", slog.String("error", err.Error()))
		return
	}
	c.Log.Info("this replica leads the cleanup")
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		publisher{store: lackingState(c.Leases, c.Namespace, c.Replica), lacking: lacking, log: c.Log}.Run(ctx)
	})
	controller.Run(ctx)
}
