package gateway

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// controllerInterval is how often it is found out whether a controller runs; its Lease
// is renewed every few seconds.
const controllerInterval = 15 * time.Second

// controllerWatch finds out whether a process runs that may have the role background, where
// this one has not: such a process leads by a Lease of its own. It is safe for concurrent
// use.
type controllerWatch struct {
	own       bool // this process has the role
	leases    coordination.LeasesGetter
	namespace string
	run       atomic.Bool
}

// runs reports whether rules about other objects are run.
func (c *controllerWatch) runs() bool { return c.own || c.run.Load() }

// follow looks until ctx ends, and calls changed when it is otherwise than before.
func (c *controllerWatch) follow(ctx context.Context, changed func()) {
	for ctx.Err() == nil && !c.own {
		if now := c.look(ctx); ctx.Err() == nil && c.run.Swap(now) != now {
			changed()
		}
		idle(ctx, controllerInterval)
	}
}

func (c *controllerWatch) look(ctx context.Context) bool {
	for _, name := range []string{scanLeaderLease, backgroundLeaderLease} {
		lease, err := c.leases.Leases(c.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			continue // it is not there, or cannot be read: no controller is seen
		}
		spec := lease.Spec
		if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
			continue
		}
		// Clocks differ by as much again at most.
		if time.Since(spec.RenewTime.Time) < 2*time.Duration(*spec.LeaseDurationSeconds)*time.Second {
			return true
		}
	}
	return false
}
