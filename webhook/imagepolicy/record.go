package imagepolicy

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// Cause is the result of a review, or the reason for a missing decision. Causes are a contract, for
// metrics, with the same words as those of webhook/admission.
type Cause string

// The causes.
const (
	// Decided means that the answer is the gate's outcome.
	Decided Cause = "decided"
	// Malformed means that the review is invalid.
	Malformed Cause = "malformed"
	// QueueFull, ShareTaken, TimedOut and Panicked mean that no decision was made. ShareTaken means
	// that the namespace has used up its share of the queue.
	QueueFull  Cause = "queue-full"
	ShareTaken Cause = "share-taken"
	TimedOut   Cause = "timed-out"
	Panicked   Cause = "panic"
)

// isSilence reports whether the failure setting may admit an undecided review. A defect and an
// exhausted share do not qualify, because the writer of the object can cause them.
func (c Cause) isSilence() bool { return c == QueueFull || c == TimedOut }

// Review describes one review and its result.
type Review struct {
	// Namespace and Images are the review's; empty if it could not be read.
	Namespace string
	Images    []string
	Allowed   bool
	Cause     Cause
	// Outcome is the gate's; zero unless Cause is Decided.
	Outcome gate.Outcome
	// Err is the reason why the review was not decided, or why the namespace's labels are missing.
	// It is for logs and may contain details that the caller must not see.
	Err error
	// Duration is the time from the first byte read to the response.
	Duration time.Duration
}

// Recorder receives each result before the response is sent, for logs and metrics. It must not
// block.
type Recorder interface {
	Record(ctx context.Context, review Review)
}

type unrecorded struct{}

func (unrecorded) Record(context.Context, Review) {}
