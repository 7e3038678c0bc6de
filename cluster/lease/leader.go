package lease

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// The times of the election. A leader that vanishes is replaced after leaseDuration. A leader
// that cannot renew for renewDeadline steps down, which is before another may take over.
const (
	leaseDuration = 12 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// releaseTimeout bounds requests to the API server during shutdown.
const releaseTimeout = 3 * time.Second

// LeaderOptions are the dependencies of a Leader; all are required.
type LeaderOptions struct {
	Client coordination.LeasesGetter
	// Namespace and Name identify the Lease.
	Namespace, Name string
	// Identity is this replica's unique identity: the pod's name.
	Identity string
}

// Leader runs a function on one replica at a time. Create one with NewLeader.
type Leader struct {
	options LeaderOptions
	leads   atomic.Bool
	elector atomic.Pointer[leaderelection.LeaderElector] // of the latest candidature
}

// NewLeader creates a Leader, and returns an error for a missing required option.
func NewLeader(o LeaderOptions) (*Leader, error) {
	if o.Client == nil || o.Namespace == "" || o.Name == "" || o.Identity == "" {
		return nil, errors.New("leader election: Client, Namespace, Name and Identity are required")
	}
	return &Leader{options: o}, nil
}

// Leads reports whether this replica currently leads.
func (l *Leader) Leads() bool { return l.leads.Load() }

// Holder returns the identity of the last observed leader; empty where none was observed. A
// killed leader is returned until another one leads.
func (l *Leader) Holder() string {
	if elector := l.elector.Load(); elector != nil {
		return elector.GetLeader()
	}
	return ""
}

// Run takes part in the election until ctx ends, and calls lead each time that this replica is
// elected. The context of lead ends when the leadership is lost or ctx ends, and lead must then
// return soon: the lease is released, and Run returns, only after it. If lead returns early, the
// replica continues to hold the lease.
func (l *Leader) Run(ctx context.Context, lead func(context.Context)) error {
	for ctx.Err() == nil {
		if err := l.term(ctx, lead); err != nil {
			return err
		}
	}
	return nil
}

// term is one candidature: it ends when the leadership is lost or ctx ends.
func (l *Leader) term(ctx context.Context, lead func(context.Context)) error {
	// The election outlives ctx until lead returns, so that no other replica leads while it still
	// works.
	term, end := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), logr.Discard()))
	defer end()
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: l.options.Namespace, Name: l.options.Name},
		Client:     l.options.Client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: l.options.Identity},
	}
	started := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: l.options.Name,
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		// ReleaseOnCancel of the elector would also release, for up to 10 s, before it notifies a
		// leader that could not renew; release does it afterwards.
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) { started <- leading },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election by lease %s/%s: %w", l.options.Namespace, l.options.Name, err)
	}
	l.elector.Store(elector)
	over := make(chan struct{})
	go func() {
		defer close(over)
		elector.Run(term)
	}()
	select {
	case leading := <-started:
		l.lead(ctx, leading, lead)
	case <-ctx.Done():
	case <-over:
	}
	end()
	<-over
	if ctx.Err() != nil {
		l.release(ctx, lock)
	}
	return nil
}

func (l *Leader) lead(ctx, leading context.Context, lead func(context.Context)) {
	leading, stop := context.WithCancel(leading)
	defer stop()
	defer context.AfterFunc(ctx, stop)()
	l.leads.Store(true)
	defer l.leads.Store(false)
	lead(leading)
	<-leading.Done()
}

// release releases the lease, if this replica holds it, so that the next leader need not wait for
// its expiry. Best effort.
func (l *Leader) release(ctx context.Context, lock resourcelock.Interface) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	record, _, err := lock.Get(ctx)
	if err != nil || record.HolderIdentity != l.options.Identity {
		return
	}
	now := metav1.Now()
	_ = lock.Update(ctx, resourcelock.LeaderElectionRecord{ // it expires by itself
		LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now,
	})
}
