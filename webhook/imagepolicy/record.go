package imagepolicy

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// Cause says why a review was answered without a decision of the gate. Causes are
// a contract, for metrics, with the same words as those of webhook/admission.
type Cause string

// The causes.
const (
	// Decided: the gate was asked, and its outcome is the answer.
	Decided Cause = "decided"
	// Malformed: the review makes no sense.
	Malformed Cause = "malformed"
	// QueueFull, ShareTaken, TimedOut and Panicked: the review could not be decided.
	// ShareTaken: its namespace has its share of what may be at work.
	QueueFull  Cause = "queue-full"
	ShareTaken Cause = "share-taken"
	TimedOut   Cause = "timed-out"
	Panicked   Cause = "panic"
)

// isSilence reports whether a failure setting may admit what was not decided: neither a
// defect nor a namespace's own share is anything but what who writes the object brings about.
func (c Cause) isSilence() bool { return c == QueueFull || c == TimedOut }

// Review is what became of one review.
type Review struct {
	// Namespace and Images are the review's; empty where it could not be read.
	Namespace string
	Images    []string
	Allowed   bool
	Cause     Cause
	// Outcome is the gate's; zero unless Cause is Decided.
	Outcome gate.Outcome
	// Err says what is wrong with a review that was not decided, and why the
	// namespace's labels could not be had. It is for logs and may say more than the
	// caller may know.
	Err error
	// Duration is from the first byte of the request that was read to the answer.
	Duration time.Duration
}

// Recorder is told of each answer before it is sent, for logs and metrics. It must
// not block.
type Recorder interface {
	Record(ctx context.Context, review Review)
}

type unrecorded struct{}

func (unrecorded) Record(context.Context, Review) {}
