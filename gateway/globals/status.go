package globals

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/gateway/kinds"
	"github.com/quaymaster/quaymaster/policy/globalcontext"
)

// refreshGrain is the precision of the refresh time in a status: an entry that is called every
// second is not written every second.
const refreshGrain = time.Minute

// Desired returns the desired status of each entry, from this replica's state.
func (g *Entries) Desired() []record.Desired {
	g.mu.Lock()
	objects := maps.Clone(g.objects)
	g.mu.Unlock()
	watched := map[string]bool{}
	for _, entry := range g.Store.Entries() {
		watched[entry.Name] = entry.Resource != nil
	}
	var list []record.Desired
	for name, object := range objects {
		read, err := g.Store.State(name)
		if watched[name] {
			read = time.Time{}
		}
		desired := record.Desired{
			Object: object.Object, Condition: globalCondition(object.Generation, err), Overwrite: true, Remedy: kinds.NeverWrite,
		}
		if !read.IsZero() {
			desired.Fields = map[string]any{"lastRefreshTime": metav1.NewTime(read.UTC().Truncate(refreshGrain))}
		}
		list = append(list, desired)
	}
	slices.SortFunc(list, func(a, b record.Desired) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// globalCondition is Kyverno's, with a specific reason where it is not ready.
func globalCondition(generation int64, err error) metav1.Condition {
	c := metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Succeeded", Message: "Ready", ObservedGeneration: generation}
	if err == nil {
		return c
	}
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Failed", gateway.Shorten(err.Error(), gateway.MaxStatusMessage)
	for reason, is := range map[string]error{
		"Broken": globalcontext.ErrBroken, "NotRead": globalcontext.ErrNotRead, "Stale": globalcontext.ErrStale,
		"TooLarge": globalcontext.ErrTooLarge, "Projection": globalcontext.ErrProjection,
	} {
		if known, ok := errors.AsType[*globalcontext.Error](err); ok && errors.Is(known.Reason, is) {
			c.Reason = reason
		}
	}
	return c
}
