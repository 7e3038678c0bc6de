package admission

import (
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// Cause is the result of a request, or the reason for a missing decision.
type Cause = review.Cause

// The causes.
const (
	Decided = review.Decided
	// NotAsked means that no evaluation was needed: a deletion, a status, an update without
	// changes, an object that this endpoint does not handle.
	NotAsked   Cause = "not-asked"
	Malformed        = review.Malformed
	QueueFull        = review.QueueFull
	ShareTaken       = review.ShareTaken
	TimedOut         = review.TimedOut
	Panicked         = review.Panicked
)

// Review describes one request and its result.
type Review struct {
	Endpoint Endpoint
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

// Recorder receives each result. For a dry run it must have no side effects other than logs and
// metrics.
type Recorder = review.Recorder[Review]
