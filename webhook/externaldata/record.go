package externaldata

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// Cause says why a key was answered without a decision of the gate. Causes are a
// contract, for metrics, with the same words as those of webhook/admission.
type Cause string

// The causes.
const (
	// Decided: the gate was asked, and its outcome is the answer.
	Decided Cause = "decided"
	// Malformed: the key or the request makes no sense.
	Malformed Cause = "malformed"
	// QueueFull, TimedOut and Panicked: the key could not be decided.
	QueueFull Cause = "queue-full"
	TimedOut  Cause = "timed-out"
	Panicked  Cause = "panic"
)

// Batch is what became of one request.
type Batch struct {
	Door Door
	// Items are the keys in their order; none where the request could not be read:
	// then Cause is Malformed or QueueFull, and Err says why.
	Items []Item
	Cause Cause
	// Err may say more than the caller may know, and so may that of an Item.
	Err error
	// Duration is from the first byte of the request that was read to the answer.
	Duration time.Duration
}

// Item is what became of a key.
type Item struct {
	Key     string
	Allowed bool
	Cause   Cause
	// Outcome is the gate's; zero unless Cause is Decided.
	Outcome gate.Outcome
	// Err says why the key was not decided, or why the labels of its namespace could
	// not be had.
	Err error
}

// Recorder is told of each answer before it is sent, for logs and metrics. It must
// not block.
type Recorder interface {
	Record(ctx context.Context, batch Batch)
}

type unrecorded struct{}

func (unrecorded) Record(context.Context, Batch) {}
