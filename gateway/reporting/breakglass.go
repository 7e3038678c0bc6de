package reporting

import (
	"context"
	"errors"
	"log/slog"
	"time"

	core "k8s.io/api/core/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/quaymaster/quaymaster/cluster/breakglass"
	"github.com/quaymaster/quaymaster/cluster/lease"
	"github.com/quaymaster/quaymaster/cluster/record"
	"github.com/quaymaster/quaymaster/report/decisionlog"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// BreakGlass implements breakglass.Observer.
type BreakGlass struct {
	Log     *slog.Logger
	Metrics *metrics.Metrics
	Events  Events                       // nil: no events
	Record  func(decisionlog.BreakGlass) // nil: no decision log
	// Again gets a value when a scan is needed.
	Again chan<- struct{}
}

// Opened implements breakglass.Observer.
func (t *BreakGlass) Opened(o breakglass.Opening, again bool) {
	if again {
		t.report(o, "changed", "BreakGlassChanged", "Admission leaves the namespace out, "+o.String())
		return
	}
	t.report(o, "opened", "BreakGlassOpened", "Admission leaves the namespace out, "+o.String())
}

// Closed implements breakglass.Observer. It starts a scan of the objects that were admitted in
// the meantime.
func (t *BreakGlass) Closed(o breakglass.Opening, why breakglass.Why) {
	t.report(o, string(why), "BreakGlassClosed", closedBecause(why)+" It was open "+o.String())
	select {
	case t.Again <- struct{}{}:
	default: // a scan is pending already
	}
}

// closedBecause describes why a namespace was closed.
func closedBecause(why breakglass.Why) string {
	switch why {
	case breakglass.Expired:
		return "The time is over: the label was taken off."
	case breakglass.Incomplete:
		return "The reason or the end was missing, or could not be read: the label was taken off."
	case breakglass.TooLong:
		return "It would have been open for longer than " + breakglass.MaxLength.String() + ": the label was taken off."
	case breakglass.Removed:
	}
	return "A user removed the label."
}

func (t *BreakGlass) report(o breakglass.Opening, event, reason, note string) {
	t.Metrics.BreakGlass(event)
	t.Log.Warn("break glass", slog.String("event", event), slog.String("namespace", o.Namespace), slog.String("reason", o.Reason),
		slog.String("by", o.By), slog.String("manager", o.Manager), slog.Time("since", o.Since), slog.Time("until", o.Until))
	if t.Record != nil {
		t.Record(decisionlog.BreakGlass{
			Event: event, Namespace: o.Namespace, UID: o.UID, Reason: o.Reason, By: o.By, Manager: o.Manager, Since: o.Since, Until: o.Until,
		})
	}
	if t.Events != nil {
		t.Events.Record(record.Event{
			// In the namespace itself, where its users can see it.
			Regarding: core.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: o.Namespace, Name: o.Namespace},
			Type:      core.EventTypeWarning, Reason: reason, Action: "BreakGlass", Note: note,
		})
	}
}

// Failed implements breakglass.Observer.
func (t *BreakGlass) Failed(err error) {
	t.Log.Error("open namespaces are not kept", slog.String("error", err.Error()))
}

const (
	// glassLease stores the open namespaces.
	glassLease = "quaymaster-break-glass"
	// glassOpen is its annotation with the namespaces.
	glassOpen = "quaymaster.dev/open-namespaces"
)

// store implements breakglass.Memory.
type store struct {
	lease.State[[]breakglass.Opening]
}

// NewOpenNamespaces stores the open namespaces in a Lease.
func NewOpenNamespaces(client coordination.LeasesGetter, namespace, holder string) breakglass.Memory {
	return store{lease.State[[]breakglass.Opening]{
		Client: client, Namespace: namespace, Name: glassLease, Annotation: glassOpen, Holder: holder,
	}}
}

// Load reads the last saved state. An unreadable state counts as empty: all open namespaces are
// then reported again.
func (s store) Load(ctx context.Context) ([]breakglass.Opening, error) {
	open, _, err := s.State.Load(ctx)
	if errors.Is(err, lease.ErrUnreadable) {
		return nil, nil
	}
	return open, err
}

// Save writes the state.
func (s store) Save(ctx context.Context, open []breakglass.Opening) error {
	return s.State.Save(ctx, open, time.Time{})
}
