package gateway

import (
	"context"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/gateway"
)

// controllerInterval is the time between two checks for a controller; its Lease is renewed every
// few seconds.
const controllerInterval = 15 * time.Second

// controllerWatch determines whether a process with the role background is running, if this one
// does not have it: such a process leads by a Lease of its own. It is safe for concurrent use.
type controllerWatch struct {
	own       bool // this process has the role
	leases    coordination.LeasesGetter
	namespace string
	// names are the Leases that such processes lead by.
	names []string
	run   atomic.Bool
}

// runs reports whether rules about other objects run.
func (c *controllerWatch) runs() bool { return c.own || c.run.Load() }

// follow checks until ctx ends, and calls changed after a change.
func (c *controllerWatch) follow(ctx context.Context, changed func()) {
	for ctx.Err() == nil && !c.own {
		if now := c.look(ctx); ctx.Err() == nil && c.run.Swap(now) != now {
			changed()
		}
		gateway.Idle(ctx, controllerInterval)
	}
}

func (c *controllerWatch) look(ctx context.Context) bool {
	for _, name := range c.names {
		lease, err := c.leases.Leases(c.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			continue // missing or unreadable: no controller is found
		}
		spec := lease.Spec
		if spec.HolderIdentity == nil || *spec.HolderIdentity == "" || spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
			continue
		}
		// The clock skew is at most the lease's duration.
		if time.Since(spec.RenewTime.Time) < 2*time.Duration(*spec.LeaseDurationSeconds)*time.Second {
			return true
		}
	}
	return false
}
