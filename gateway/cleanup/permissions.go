package cleanup

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/gateway"
)

const (
	// permissionsLease stores the permissions that policies lack, in lackingAnnotation.
	permissionsLease  = "quaymaster-cleanup-permissions"
	lackingAnnotation = "quaymaster.dev/cleanup-lacking"
	// storePause is the pause before another attempt to store them.
	storePause = 10 * time.Second
	// maxLacking bounds the policies that lack a permission and are stored, and maxPermissions the text
	// of each, in bytes: the annotations of a Lease have 256 KiB.
	maxLacking     = 300
	maxPermissions = 400
)

// publisher stores the permissions that policies lack, for the process that writes the status of
// policies.
type publisher struct {
	store   lease.State[map[string]string]
	lacking <-chan map[string]string
	log     *slog.Logger
}

// Run stores the permissions after each change until ctx ends.
func (p publisher) Run(ctx context.Context) {
	var stored map[string]string // nil: unknown
	for {
		var next map[string]string
		select {
		case <-ctx.Done():
			return
		case next = <-p.lacking:
		}
		for next = bounded(next); stored == nil || !maps.Equal(stored, next); {
			err := p.store.Save(ctx, next, time.Now())
			if err == nil {
				stored = next
				break
			}
			gateway.Warn(p.log, "the permissions that policies lack are not stored")(err)
			gateway.Idle(ctx, storePause)
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// bounded returns as many of the permissions as can be stored, the first ones by the IDs of policies.
func bounded(lacking map[string]string) map[string]string {
	list := map[string]string{}
	for _, id := range slices.Sorted(maps.Keys(lacking)) {
		if len(list) == maxLacking {
			break
		}
		list[id] = gateway.Shorten(lacking[id], maxPermissions)
	}
	return list
}

// Lacking returns a function that reads the permissions that policies lack, by their IDs, as the
// process that leads has stored them.
func Lacking(client coordination.LeasesGetter, namespace string) func(context.Context) (map[string]string, error) {
	return func(ctx context.Context) (map[string]string, error) {
		stored, _, err := lackingState(client, namespace, "").Load(ctx)
		return stored, err
	}
}

func lackingState(client coordination.LeasesGetter, namespace, holder string) lease.State[map[string]string] {
	return lease.State[map[string]string]{Client: client, Namespace: namespace, Name: permissionsLease, Annotation: lackingAnnotation, Holder: holder}
}
