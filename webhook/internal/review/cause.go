package review

import (
	"errors"

	"github.com/quaymaster/quaymaster/internal/fairqueue"
	"github.com/quaymaster/quaymaster/policy"
)

// Cause is the result of a request, or the reason for a missing decision. Causes are a contract,
// for metrics.
type Cause string

// The causes that endpoints share.
const (
	// Decided means that the answer is the gate's outcome.
	Decided Cause = "decided"
	// Malformed means that the request is invalid.
	Malformed Cause = "malformed"
	// QueueFull, ShareTaken, TimedOut and Panicked mean that no decision was made. ShareTaken means
	// that the namespace has used up its share of the queue.
	QueueFull  Cause = "queue-full"
	ShareTaken Cause = "share-taken"
	TimedOut   Cause = "timed-out"
	Panicked   Cause = "panic"
)

// Next is the advice for a missing decision.
const Next = "next: retry; if it persists, contact the gateway's administrator"

// Sentence explains a missing decision to a person.
func (c Cause) Sentence() string {
	switch c {
	case QueueFull:
		return "the gateway has reached its limit of concurrent requests"
	case ShareTaken:
		return "the namespace has reached its share of the gateway's concurrent requests"
	case TimedOut:
		return "the evaluation timed out"
	}
	return "internal error; see the gateway's log"
}

// QueueCause returns the cause of an error of a Queue.
func QueueCause(err error) Cause {
	if waited, ok := errors.AsType[*fairqueue.WaitError](err); ok && waited.Reason == fairqueue.Share {
		return ShareTaken
	}
	return QueueFull
}

// Failure returns the policies' failure setting for an undecided subject.
type Failure interface {
	// FailOpen reports whether all policies that may match the subject admit it. The subject has no
	// object, because it may be unreadable.
	FailOpen(subject *policy.Subject) bool
}

// Admits reports whether the failure setting admits an undecided subject; false if it panics. It
// applies only to timeouts and overload: a defect, an exhausted share and a long evaluation can be
// caused by the writer of the object. The evaluation was long if busy is set: see Result.
func (c Cause) Admits(setting Failure, subject *policy.Subject, busy bool) (admits bool) {
	if busy || c != QueueFull && c != TimedOut {
		return false
	}
	defer func() {
		if recover() != nil {
			admits = false
		}
	}()
	return setting.FailOpen(subject)
}
