package gate

import (
	"context"

	"github.com/quaymaster/quaymaster/gate/claims"
)

// Phase is a measured part of an evaluation.
type Phase string

// The phases.
const (
	PhaseResolve  Phase = "resolve"  // a tag into a digest
	PhaseDiscover Phase = "discover" // evidence about a digest
	PhaseProve    Phase = "prove"    // evidence into facts
	PhaseDecide   Phase = "decide"   // policies on the object, from facts
)

// Observer receives events of evaluations, for metrics and traces. It is called from many
// goroutines.
type Observer interface {
	// Begin is called when a phase begins; the function that it returns is called when the
	// phase ends.
	Begin(ctx context.Context, phase Phase) (context.Context, func())
	claims.Observer
}

// WithObserver sets the observer of evaluations; none unless set.
func WithObserver(observer Observer) Option {
	return func(o *options) error {
		o.observer = observer
		return nil
	}
}

// begin notifies the observer that a phase begins.
func (o *options) begin(ctx context.Context, phase Phase) (context.Context, func()) {
	if o.observer == nil {
		return ctx, unobserved
	}
	return o.observer.Begin(ctx, phase)
}

func unobserved() {}

// asked notifies the observer of a cache hit or miss.
func (o *options) asked(layer claims.Layer, known bool) {
	if o.observer != nil {
		o.observer.Asked(layer, known)
	}
}
