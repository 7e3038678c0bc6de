package policy

import (
	"context"
	"time"
)

// Deletion deletes existing objects on a schedule. It is immutable and safe for concurrent use.
type Deletion interface {
	// Name returns the rule's name, unique in its policy.
	Name() string
	// Targets are the kinds of its objects; only group and version may be patterns.
	Targets() []Target
	// Labels is a selector in the form of the API server that holds for all its objects; empty: any.
	Labels() string
	// Propagation is how the objects that a deleted object owns are handled.
	Propagation() Propagation
	// Next returns the first time of the schedule after a time; zero if there is none.
	Next(after time.Time) time.Time
	// Decide decides about a stored object. It reads neither operation nor user, and ends with ctx.
	Decide(ctx context.Context, about Case) DeletionDecision
}

// Propagation is DeleteOptions.propagationPolicy (Kubernetes meta/v1): Orphan, Background or Foreground; empty: the kind's default.
type Propagation string

// DeletionDecision is the decision of a Deletion about one object, before exceptions.
type DeletionDecision struct {
	// Result is empty without a match. Pass: delete. Skipped: a condition keeps it. Indeterminate: not evaluated. There is no failure.
	Result  Result
	Reasons []Reason // for the result; of a pass there need be none
}
