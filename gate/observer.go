package gate

import "context"

// Phase is a part of the journey whose time is worth knowing.
type Phase string

// The phases.
const (
	PhaseResolve  Phase = "resolve"  // a tag into a digest
	PhaseDiscover Phase = "discover" // evidence about a digest
	PhaseProve    Phase = "prove"    // evidence into facts
	PhaseDecide   Phase = "decide"   // policies on the object, from facts
)

// Layer is a memory that was asked before anybody else.
type Layer string

// The layers.
const (
	LayerFacts Layer = "facts" // proved claims of this process
	LayerNone  Layer = "none"  // "none found"
	LayerTags  Layer = "tags"  // digests behind tags
	LayerPeers Layer = "peers" // proved claims of other replicas
	LayerStore Layer = "store" // proved claims in the memory that replicas share
)

// Observer is told how the journey goes, for metrics and traces. It is called
// from many goroutines.
type Observer interface {
	// Begin is called when a phase begins; what it returns is called when the
	// phase ends.
	Begin(ctx context.Context, phase Phase) (context.Context, func())
	// Asked says whether a memory knew.
	Asked(layer Layer, known bool)
}

// WithObserver tells an observer how the journey goes; none unless set.
func WithObserver(observer Observer) Option {
	return func(o *options) error {
		o.observer = observer
		return nil
	}
}

// begin tells the observer that a phase begins.
func (o *options) begin(ctx context.Context, phase Phase) (context.Context, func()) {
	if o.observer == nil {
		return ctx, unobserved
	}
	return o.observer.Begin(ctx, phase)
}

func unobserved() {}

// asked tells the observer whether a memory knew.
func (o *options) asked(layer Layer, known bool) {
	if o.observer != nil {
		o.observer.Asked(layer, known)
	}
}
