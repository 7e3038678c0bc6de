package status

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/quaymaster/quaymaster/background/cleanup"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/policy"
)

// Deletions is the state of the component that deletes objects, which may be in another process: whether
// it runs, and the permissions that policies lack, which it stores. It is safe for concurrent use.
type Deletions struct {
	// Controllers determines whether a process with the role cleanup is running.
	Controllers *Controllers
	// Load reads the permissions that policies lack, by their IDs.
	Load func(context.Context) (map[string]string, error)

	lacking atomic.Pointer[map[string]string]
}

// Follow reads the permissions until ctx ends, and calls changed after a change.
func (d *Deletions) Follow(ctx context.Context, changed func()) {
	for ctx.Err() == nil {
		// An error leaves the state as it is: the next attempt follows soon.
		if now, err := d.Load(ctx); err == nil {
			if before := d.lacking.Swap(&now); before == nil || !maps.Equal(*before, now) {
				changed()
			}
		}
		gateway.Idle(ctx, permissionsInterval)
	}
}

// permissionsInterval is the time between two reads: authors of policies wait for the answer.
const permissionsInterval = 5 * time.Second

// missing returns the message about permissions that a policy lacks to delete objects; empty for none.
func (d *Deletions) missing(p *policy.Policy) string {
	if d == nil || p == nil || len(p.Deletions) == 0 {
		return ""
	}
	lacking := d.lacking.Load()
	if lacking == nil || (*lacking)[p.ID()] == "" {
		return ""
	}
	return cleanup.Missing((*lacking)[p.ID()])
}

// unread reports whether the permissions of a policy that deletes objects are not read yet: a new
// leader does not have its predecessor's state.
func (d *Deletions) unread(p *policy.Policy) bool {
	return d != nil && p != nil && len(p.Deletions) > 0 && d.lacking.Load() == nil
}

// idle reports whether nothing deletes the objects of a policy.
func (d *Deletions) idle(p *policy.Policy) bool {
	return d != nil && p != nil && len(p.Deletions) > 0 && !d.Controllers.Runs()
}
