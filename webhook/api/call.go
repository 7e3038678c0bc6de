package api

import (
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// Cause is the result of a request. It is also the member reason of an Error.
type Cause = review.Cause

// The causes.
const (
	Decided               = review.Decided     // 200: the record is in the body
	Malformed             = review.Malformed   // 400: invalid request
	Unauthenticated Cause = "unauthenticated"  // 401: missing or invalid token
	Forbidden       Cause = "forbidden"        // 403: the caller is not allowed
	WrongMethod     Cause = "wrong-method"     // 405
	TooLarge        Cause = "too-large"        // 413: a limit was exceeded
	WrongMediaType  Cause = "wrong-media-type" // 415
	TooMany         Cause = "too-many"         // 429: per-caller concurrency limit reached
	Panicked              = review.Panicked    // 500: a defect
	QueueFull             = review.QueueFull   // 503: total concurrency limit reached
	Indeterminate   Cause = "indeterminate"    // 503: the token could not be verified
	TimedOut              = review.TimedOut    // 503: no decision in time
)

// statuses are the HTTP statuses of the causes.
var statuses = map[Cause]int{
	Decided: 200, Malformed: 400, Unauthenticated: 401, Forbidden: 403, WrongMethod: 405, TooLarge: 413,
	WrongMediaType: 415, TooMany: 429, Panicked: 500, QueueFull: 503, Indeterminate: 503, TimedOut: 503,
}

// Call describes one request and its result.
type Call struct {
	// User is the authenticated user; empty if there is none.
	User string
	// Namespace is the one in the request.
	Namespace string
	Cause     Cause
	// Outcomes are the gate's, one for each image in a Query or each object. They are empty unless
	// Cause is Decided.
	Outcomes []gate.Outcome
	// Err is the reason why a request was not decided, or why the labels of its namespace are
	// missing. It is for logs and may contain details that the caller must not see.
	Err error
	// Duration is the time from the request's header to the response.
	Duration time.Duration
}

// Recorder receives each result.
type Recorder = review.Recorder[Call]
