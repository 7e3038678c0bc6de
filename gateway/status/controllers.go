package status

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
const controllerInterval = 5 * time.Second

// Controllers determines whether a process with a role is running, if this one does not have it: such
// a process leads by a Lease of its own. It is safe for concurrent use.
type Controllers struct {
	Own       bool // this process has the role
	Leases    coordination.LeasesGetter
	Namespace string
	// Names are the Leases that such processes lead by.
	Names []string
	run   atomic.Bool
}

// Runs reports whether the rules of the role run.
func (c *Controllers) Runs() bool { return c.Own || c.run.Load() }

// Follow checks until ctx ends, and calls changed after a change.
func (c *Controllers) Follow(ctx context.Context, changed func()) {
	for ctx.Err() == nil && !c.Own {
		if now := c.look(ctx); ctx.Err() == nil && c.run.Swap(now) != now {
			changed()
		}
		gateway.Idle(ctx, controllerInterval)
	}
}

func (c *Controllers) look(ctx context.Context) bool {
	for _, name := range c.Names {
		lease, err := c.Leases.Leases(c.Namespace).Get(ctx, name, metav1.GetOptions{})
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
