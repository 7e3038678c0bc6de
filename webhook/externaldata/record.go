package externaldata

import (
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// Cause is the result of a key, or the reason for a missing decision.
type Cause = review.Cause

// The causes.
const (
	Decided   = review.Decided
	Malformed = review.Malformed
	QueueFull = review.QueueFull
	TimedOut  = review.TimedOut
	Panicked  = review.Panicked
)

// Batch describes one request and its results.
type Batch struct {
	Endpoint Endpoint
	// Items are the keys in their order. They are empty if the request could not be read: then
	// Cause is Malformed or QueueFull, and Err is the reason.
	Items []Item
	Cause Cause
	// Err, also that of an Item, may contain details that the caller must not see.
	Err error
	// Duration is the time from the first byte read to the response.
	Duration time.Duration
}

// Item is the result for a key.
type Item struct {
	Key     string
	Allowed bool
	Cause   Cause
	// Outcome is the gate's; zero unless Cause is Decided.
	Outcome gate.Outcome
	// Err is the reason why the key was not decided, or why the labels of its namespace are
	// missing.
	Err error
}

// Recorder receives each result.
type Recorder = review.Recorder[Batch]
