package api

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate"
)

// Cause says how a request ended. Causes are a contract, for metrics and for the
// member reason of an Error.
type Cause string

// The causes.
const (
	Decided         Cause = "decided"          // 200: the record is the answer
	Malformed       Cause = "malformed"        // 400: the request makes no sense
	Unauthenticated Cause = "unauthenticated"  // 401: no token, or one that nobody knows
	Forbidden       Cause = "forbidden"        // 403: the caller may not ask
	WrongMethod     Cause = "wrong-method"     // 405
	TooLarge        Cause = "too-large"        // 413: a bound was exceeded
	WrongMediaType  Cause = "wrong-media-type" // 415
	TooMany         Cause = "too-many"         // 429: the caller has as many requests at work as he may
	Panicked        Cause = "panic"            // 500: a defect
	QueueFull       Cause = "queue-full"       // 503: all have
	CannotLook      Cause = "cannot-look"      // 503: whose token it is could not be looked up
	TimedOut        Cause = "timed-out"        // 503: no decision in time
)

// statuses are the HTTP statuses of the causes.
var statuses = map[Cause]int{
	Decided: 200, Malformed: 400, Unauthenticated: 401, Forbidden: 403, WrongMethod: 405, TooLarge: 413,
	WrongMediaType: 415, TooMany: 429, Panicked: 500, QueueFull: 503, CannotLook: 503, TimedOut: 503,
}

// Call is what became of one request.
type Call struct {
	// User is who asked; empty where nobody knows.
	User string
	// Namespace is the one that the request names.
	Namespace string
	Cause     Cause
	// Outcomes are the gate's, one for each image that was named or object; none
	// unless Cause is Decided.
	Outcomes []gate.Outcome
	// Err says what is wrong with a request that was not decided, and why the labels
	// of its namespace could not be had. It is for logs and may say more than the
	// caller may know.
	Err error
	// Duration is from the request's header to the answer.
	Duration time.Duration
}

// Recorder is told of each answer before it is sent, for logs and metrics. It
// must not block.
type Recorder interface {
	Record(ctx context.Context, call Call)
}

type unrecorded struct{}

func (unrecorded) Record(context.Context, Call) {}
