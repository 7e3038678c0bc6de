package admission

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// Cause says why a request was answered without a decision of the gate. Causes
// are a contract, for metrics.
type Cause string

// The causes.
const (
	// Decided: the gate was asked, and its outcome is the answer.
	Decided Cause = "decided"
	// NotAsked: there was nothing to ask: a deletion, a status, an update that
	// changes nothing, an object that this door leaves alone.
	NotAsked Cause = "not-asked"
	// Malformed: the request makes no sense.
	Malformed Cause = "malformed"
	// QueueFull, ShareTaken, TimedOut and Panicked: the request could not be decided.
	// ShareTaken: its namespace has its share of what may be at work.
	QueueFull  Cause = "queue-full"
	ShareTaken Cause = "share-taken"
	TimedOut   Cause = "timed-out"
	Panicked   Cause = "panic"
)

// isSilence reports whether a failure setting may admit what was not decided: neither a
// defect nor a namespace's own share is anything but what who writes the object brings about.
func (c Cause) isSilence() bool { return c == QueueFull || c == TimedOut }

// Review is what became of one request.
type Review struct {
	Door Door
	// UID, Operation, Group, Version, Kind, Subresource, Namespace, Name and User
	// are the request's; empty where they could not be read.
	UID, Operation                    string
	Group, Version, Kind, Subresource string
	Namespace, Name, User             string
	DryRun                            bool
	// Mirror: the object stands for a static pod of its node. It is admitted
	// whatever the outcome, since the pod runs already.
	Mirror  bool
	Allowed bool
	// Shadow: the request was admitted as it came, and Allowed is what the door would
	// have said.
	Shadow bool
	Cause  Cause
	// Outcome is the gate's; zero unless Cause is Decided.
	Outcome gate.Outcome
	// Err says what is wrong with a request that was not decided, and why the
	// labels or roles that policies ask for could not be had. It is for logs and
	// may say more than the caller may know.
	Err error
	// Duration is from the first byte of the request that was read to the answer.
	Duration time.Duration
}

// Recorder is told of each answer before it is sent, for logs, metrics and
// events. It must not block. Of a dry run it may tell, and change nothing.
type Recorder interface {
	Record(ctx context.Context, review Review)
}

type unrecorded struct{}

func (unrecorded) Record(context.Context, Review) {}
