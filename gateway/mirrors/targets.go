package mirrors

import (
	"context"
	"log/slog"

	"github.com/quaymaster/quaymaster/gateway"
	"github.com/quaymaster/quaymaster/registry/health"
)

// Targets follows the availability of the mirrors' registries.
type Targets struct {
	*health.Breaker
	metrics interface {
		TargetChanged(registry string, resting bool)
	}
	log     *slog.Logger
	changed *gateway.Signal
	// resting are those that are not contacted. The breaker reports one change at a time, and
	// evicts unused registries.
	resting map[string]bool
}

// NewTargets makes targets that are probed by ping; they must be closed.
func NewTargets(ping func(ctx context.Context, registry string) error, to interface {
	TargetChanged(registry string, resting bool)
}, log *slog.Logger, changed *gateway.Signal) (*Targets, error) {
	t := &Targets{metrics: to, log: log, changed: changed, resting: map[string]bool{}}
	breaker, err := health.New(health.Config{Probe: ping}, health.WithObserver(t.seen))
	t.Breaker = breaker
	return t, err
}

// seen receives each change; a failed probe is not one.
func (t *Targets) seen(s health.State) {
	resting := s.Phase == health.Open || s.Phase == health.HalfOpen
	was := t.resting[s.Registry]
	if resting {
		t.resting[s.Registry] = true
	} else {
		delete(t.resting, s.Registry)
	}
	if resting == was {
		if s.Phase == health.Closed {
			t.changed.Notify() // its first state
		}
		return
	}
	t.metrics.TargetChanged(s.Registry, resting)
	t.changed.Notify()
	switch {
	case resting:
		t.log.Warn("a registry of mirrors does not answer, and is not asked for a while", slog.String("registry", s.Registry), slog.Any("error", s.Err))
	case s.Phase == health.Closed:
		t.log.Info("a registry of mirrors answers again", slog.String("registry", s.Registry))
	}
}
