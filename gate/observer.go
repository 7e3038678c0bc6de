package gate

import "github.com/quaymaster/quaymaster/gate/evaluate"

// Types of the evaluation of references that a user of a Gate implements or names.
type (
	Resolver = evaluate.Resolver
	Prover   = evaluate.Prover
	Observer = evaluate.Observer
	Phase    = evaluate.Phase
)

// The phases.
const (
	PhaseResolve  = evaluate.PhaseResolve
	PhaseDiscover = evaluate.PhaseDiscover
	PhaseProve    = evaluate.PhaseProve
	PhaseDecide   = evaluate.PhaseDecide
)

// WithObserver sets the observer of evaluations; none unless set.
func WithObserver(observer Observer) Option {
	return func(o *options) error {
		o.observer = observer
		return nil
	}
}
