package gateway

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
	"github.com/quaymaster/quaymaster/webhook/configuration"
	"github.com/quaymaster/quaymaster/webhook/metrics"
)

// glass prepares the closing of namespaces that break glass has opened to unverified images.
func (g *assembly) glass(context.Context) error {
	if g.cluster == nil || !g.configuration.Webhooks.BreakGlass {
		return nil
	}
	told := &glassTeller{log: g.log, metrics: g.metrics, again: g.scanAgain}
	if g.cluster.events != nil {
		told.events = g.cluster.events
	}
	if g.decisions != nil {
		told.record = g.decisions.TakeBreakGlass
	}
	keeper, err := breakglass.New(breakglass.Options{
		Client: g.cluster.client.Metadata, Label: configuration.BreakGlass, Observer: told,
		Memory: newOpenStore(g.cluster.client.Leases, g.configuration.Namespace, g.options.Replica),
	})
	g.keeper = keeper
	return err
}

// keepGlass closes them until ctx ends.
func (g *assembly) keepGlass(ctx context.Context) {
	if g.keeper != nil {
		g.keeper.Run(ctx)
	}
}

// openNamespaces returns the open namespaces, for metrics.
func (g *assembly) openNamespaces() []metrics.OpenNamespace {
	var list []metrics.OpenNamespace
	for _, o := range g.keeper.Open() {
		list = append(list, metrics.OpenNamespace{Name: o.Namespace, Until: o.Until})
	}
	return list
}

// glassTeller implements breakglass.Observer.
type glassTeller struct {
	log     *slog.Logger
	metrics *metrics.Metrics
	events  eventWriter                  // nil: no events
	record  func(decisionlog.BreakGlass) // nil: no decision log
	// again gets a value when a scan is needed.
	again chan<- struct{}
}

// Opened implements breakglass.Observer.
func (t *glassTeller) Opened(o breakglass.Opening, again bool) {
	if again {
		t.tell(o, "changed", "BreakGlassChanged", "Admission leaves the namespace out, "+o.String())
		return
	}
	t.tell(o, "opened", "BreakGlassOpened", "Admission leaves the namespace out, "+o.String())
}

// Closed implements breakglass.Observer. It starts a scan of the objects that were admitted in
// the meantime.
func (t *glassTeller) Closed(o breakglass.Opening, why breakglass.Why) {
	t.tell(o, string(why), "BreakGlassClosed", closedBecause(why)+" It was open "+o.String())
	select {
	case t.again <- struct{}{}:
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
	return "Somebody took the label off."
}

func (t *glassTeller) tell(o breakglass.Opening, event, reason, note string) {
	t.metrics.BreakGlass(event)
	t.log.Warn("break glass", slog.String("event", event), slog.String("namespace", o.Namespace), slog.String("reason", o.Reason),
		slog.String("by", o.By), slog.String("manager", o.Manager), slog.Time("since", o.Since), slog.Time("until", o.Until))
	if t.record != nil {
		t.record(decisionlog.BreakGlass{
			Event: event, Namespace: o.Namespace, UID: o.UID, Reason: o.Reason, By: o.By, Manager: o.Manager, Since: o.Since, Until: o.Until,
		})
	}
	if t.events != nil {
		t.events.Record(record.Event{
			// In the namespace itself, where its users can see it.
			Regarding: core.ObjectReference{APIVersion: "v1", Kind: "Namespace", Namespace: o.Namespace, Name: o.Namespace},
			Type:      core.EventTypeWarning, Reason: reason, Action: "BreakGlass", Note: note,
		})
	}
}

// Failed implements breakglass.Observer.
func (t *glassTeller) Failed(err error) {
	t.log.Error("open namespaces are not kept", slog.String("error", err.Error()))
}

const (
	// glassLease stores the open namespaces.
	glassLease = "quaymaster-break-glass"
	// glassOpen is its annotation with the namespaces.
	glassOpen = "quaymaster.dev/open-namespaces"
)

// openStore implements breakglass.Memory.
type openStore struct {
	lease.State[[]breakglass.Opening]
}

func newOpenStore(client coordination.LeasesGetter, namespace, holder string) openStore {
	return openStore{lease.State[[]breakglass.Opening]{
		Client: client, Namespace: namespace, Name: glassLease, Annotation: glassOpen, Holder: holder,
	}}
}

// Load reads the last saved state. An unreadable state counts as empty: all open namespaces are
// then reported again.
func (s openStore) Load(ctx context.Context) ([]breakglass.Opening, error) {
	open, _, err := s.State.Load(ctx)
	if errors.Is(err, lease.ErrUnreadable) {
		return nil, nil
	}
	return open, err
}

// Save writes the state.
func (s openStore) Save(ctx context.Context, open []breakglass.Opening) error {
	return s.State.Save(ctx, open, time.Time{})
}
