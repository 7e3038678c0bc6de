package gate

import "github.com/quaymaster/quaymaster/gate/evaluate"

type (
	// Resolver resolves references; see evaluate.Resolver.
	Resolver = evaluate.Resolver
	// Prover verifies evidence; see evaluate.Prover.
	Prover = evaluate.Prover
	// Observer observes evaluations; see evaluate.Observer.
	Observer = evaluate.Observer
	// Phase is a phase of an evaluation; see evaluate.Phase.
	Phase = evaluate.Phase
)

// The phases.
const (
	PhaseResolve  = evaluate.PhaseResolve
	PhaseDiscover = evaluate.PhaseDiscover
	PhaseProve    = evaluate.PhaseProve
	PhaseDecide   = evaluate.PhaseDecide
)
