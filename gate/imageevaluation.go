package gate

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/quaymaster/quaymaster/gate/evaluate"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

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

// imageEvaluation is the evaluation of one reference, which containers and policies share.
type imageEvaluation struct {
	*evaluate.Evaluation
	ref     image.Ref
	session Session

	begun  atomic.Bool
	result *evaluate.Result // nil until the evaluation is finished

	mu     sync.Mutex
	others []Session // of other evidence repositories
}

// unfinished returns the reason why an unfinished evaluation has no result.
func (e *imageEvaluation) unfinished() error {
	if !e.begun.Load() {
		return policy.ErrCrowdedOut
	}
	return errUnfinished(e.ref)
}

// errUnfinished names the registry: it may be the slow one.
func errUnfinished(of image.Ref) error {
	return deadline.Exceeded{Err: errors.New("the time for the request passed before the image of " + of.Repository().Registry() + " was evaluated")}
}

// isPartial reports whether the cache alone answered in part; false for nil.
func (e *imageEvaluation) isPartial() bool { return e != nil && e.result != nil && e.result.IsPartial }

// opened notes a session for its costs.
func (e *imageEvaluation) opened(session Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.others = append(e.others, session)
}

// cost is the cost of the sessions so far.
func (e *imageEvaluation) cost() Cost {
	total := e.session.Cost()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, session := range e.others {
		total = total.Add(session.Cost())
	}
	return total
}

// Session is a view of the registries with one set of credentials. It counts its requests.
type Session interface {
	evaluate.Registry
	Cost() Cost
}
