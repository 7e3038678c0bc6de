package imagepolicy

import (
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// Cause is the result of a review, or the reason for a missing decision.
type Cause = review.Cause

// The causes.
const (
	Decided    = review.Decided
	Malformed  = review.Malformed
	QueueFull  = review.QueueFull
	ShareTaken = review.ShareTaken
	TimedOut   = review.TimedOut
	Panicked   = review.Panicked
)

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

// Recorder receives each result.
type Recorder = review.Recorder[Review]
