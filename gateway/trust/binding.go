package trust

import (
	"context"
	"log/slog"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/verify/trust"
)

// Binding keeps the state's prover bound to the newest root.
type Binding struct {
	Store  *trust.Store
	state  *gate.Current
	prover func(*trust.Snapshot) (gate.Prover, error)
	log    *slog.Logger
	bound  chan struct{} // closed once there is a prover
}

// New makes a Binding of a store to a state.
func New(store *trust.Store, state *gate.Current, prover func(*trust.Snapshot) (gate.Prover, error), log *slog.Logger) *Binding {
	return &Binding{Store: store, state: state, prover: prover, log: log, bound: make(chan struct{})}
}

// Ready returns a channel that is closed once there is a prover.
func (t *Binding) Ready() <-chan struct{} { return t.bound }

// Age is the age of the trust material.
func (t *Binding) Age() time.Duration { return time.Since(t.Store.Status().Loaded) }

// Ends returns the latest end of each part of the trusted root.
func (t *Binding) Ends() map[string]time.Time {
	parts, err := t.Store.Snapshot().Ends()
	if err != nil {
		return nil // it was parsed before
	}
	ends := make(map[string]time.Time, len(parts))
	for part, end := range parts {
		ends[string(part)] = end
	}
	return ends
}

// StaleKeys is the number of keys with a failed look-up.
func (t *Binding) StaleKeys() int { return len(t.Store.Status().Stale) }

func (t *Binding) bind(snapshot *trust.Snapshot) error {
	prover, err := t.prover(snapshot)
	if err != nil {
		return err
	}
	t.state.ReplaceProver(prover)
	return nil
}

// Run binds the prover, and again after each change of the root, until ctx ends.
func (t *Binding) Run(ctx context.Context) error {
	used := t.Store.Snapshot()
	if err := t.bind(used); err != nil {
		return err
	}
	close(t.bound)
	ticker := time.NewTicker(trustInterval)
	defer ticker.Stop()
	for failed := used; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := t.Store.Snapshot()
		if now == used || now == failed {
			continue
		}
		if err := t.bind(now); err != nil {
			failed = now
			t.log.Error("the new trusted root is not used", slog.String("error", err.Error()))
			continue
		}
		used = now
		t.log.Info("a new trusted root is used", slog.String("generation", now.Generation()))
	}
}

// trustInterval bounds the delay before a refreshed root is used.
const trustInterval = time.Second
