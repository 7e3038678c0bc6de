package externaldata

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// Cause is the result of a key, or the reason for a missing decision. Causes are a contract, for
// metrics, with the same words as those of webhook/admission.
type Cause string

// The causes.
const (
	// Decided means that the answer is the gate's outcome.
	Decided Cause = "decided"
	// Malformed means that the key or the request is invalid.
	Malformed Cause = "malformed"
	// QueueFull, TimedOut and Panicked mean that no decision was made.
	QueueFull Cause = "queue-full"
	TimedOut  Cause = "timed-out"
	Panicked  Cause = "panic"
)

// Batch describes one request and its results.
type Batch struct {
	Door Door
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

// Recorder receives each result before the response is sent, for logs and metrics. It must not
// block.
type Recorder interface {
	Record(ctx context.Context, batch Batch)
}

type unrecorded struct{}

func (unrecorded) Record(context.Context, Batch) {}
