package admission

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// Cause is the result of a request, or the reason for a missing decision. Causes are a contract,
// for metrics.
type Cause string

// The causes.
const (
	// Decided means that the answer is the gate's outcome.
	Decided Cause = "decided"
	// NotAsked means that no evaluation was needed: a deletion, a status, an update without
	// changes, an object that this endpoint does not handle.
	NotAsked Cause = "not-asked"
	// Malformed means that the request is invalid.
	Malformed Cause = "malformed"
	// QueueFull, ShareTaken, TimedOut and Panicked mean that no decision was made. ShareTaken means
	// that the namespace has used up its share of the queue.
	QueueFull  Cause = "queue-full"
	ShareTaken Cause = "share-taken"
	TimedOut   Cause = "timed-out"
	Panicked   Cause = "panic"
)

// isSilence reports whether the failure setting may admit an undecided request. A defect and an
// exhausted share do not qualify, because the writer of the object can cause them.
func (c Cause) isSilence() bool { return c == QueueFull || c == TimedOut }

// Review describes one request and its result.
type Review struct {
	Door Door
	// UID, Operation, Group, Version, Kind, Subresource, Namespace, Name and User are the
	// request's; empty if they could not be read.
	UID, Operation                    string
	Group, Version, Kind, Subresource string
	Namespace, Name, User             string
	DryRun                            bool
	// Mirror marks the mirror pod of a static pod. It is admitted regardless of the outcome,
	// because the static pod already runs.
	Mirror  bool
	Allowed bool
	// Shadow means that the request was admitted unchanged, and that Allowed is the result without
	// the shadow.
	Shadow bool
	Cause  Cause
	// Outcome is the gate's; zero unless Cause is Decided.
	Outcome gate.Outcome
	// Err is the reason why the request was not decided, or why labels or roles that policies need
	// are missing. It is for logs and may contain details that the caller must not see.
	Err error
	// Duration is the time from the first byte read to the response.
	Duration time.Duration
}

// Recorder receives each result before the response is sent, for logs, metrics and events. It must
// not block. For a dry run it must have no side effects other than logs and metrics.
type Recorder interface {
	Record(ctx context.Context, review Review)
}

type unrecorded struct{}

func (unrecorded) Record(context.Context, Review) {}
