package gateway

import (
	"context"
	"log/slog"

	"github.com/quaymaster/quaymaster/registry/health"
)

// targets follows which registries of mirrors answer.
type targets struct {
	*health.Breaker
	metrics interface {
		TargetChanged(registry string, resting bool)
	}
	log     *slog.Logger
	changed *signal
	// resting are those that are not asked; the breaker tells of one change at a
	// time, and forgets what nobody asks about.
	resting map[string]bool
}

// newTargets makes targets that are probed by ping; they must be closed.
func newTargets(ping func(ctx context.Context, registry string) error, to interface {
	TargetChanged(registry string, resting bool)
}, log *slog.Logger, changed *signal) (*targets, error) {
	t := &targets{metrics: to, log: log, changed: changed, resting: map[string]bool{}}
	breaker, err := health.New(health.Config{Probe: ping}, health.WithObserver(t.seen))
	t.Breaker = breaker
	return t, err
}

// seen is told of each change; a probe that fails is none.
func (t *targets) seen(s health.State) {
	resting := s.Phase == health.Open || s.Phase == health.HalfOpen
	was := t.resting[s.Registry]
	if resting {
		t.resting[s.Registry] = true
	} else {
		delete(t.resting, s.Registry)
	}
	if resting == was {
		if s.Phase == health.Closed {
			t.changed.tell() // it was not known before
		}
		return
	}
	t.metrics.TargetChanged(s.Registry, resting)
	t.changed.tell()
	switch {
	case resting:
		t.log.Warn("a registry of mirrors does not answer, and is not asked for a while", slog.String("registry", s.Registry), slog.Any("error", s.Err))
	case s.Phase == health.Closed:
		t.log.Info("a registry of mirrors answers again", slog.String("registry", s.Registry))
	}
}
