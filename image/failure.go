package image

import (
	"errors"
	"fmt"
)

// Kind classifies a failed fetch. Callers decide by Kind; the text is for messages.
type Kind string

// The kinds of failure.
const (
	// NotFound: the registry responded that it does not exist.
	NotFound Kind = "not-found"
	// Refused: the registry denied access (401, 403).
	Refused Kind = "refused"
	// Unavailable: no usable response (network, timeout, 429, 5xx).
	Unavailable Kind = "unavailable"
	// Bound: the content exceeds a limit.
	Bound Kind = "bound"
	// Corrupt: the response contradicts itself or its digest.
	Corrupt Kind = "corrupt"
)

// Failure is an error with a Kind. Errors of packages that fetch implement it, so that KindOf
// finds the kind behind any wrapping.
type Failure interface {
	error
	FailureKind() Kind
}

// KindOf returns the kind of the first Failure in err's chain, and "" for nil. Any other error is
// Unavailable, because it is no response of the registry.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if failure, ok := errors.AsType[Failure](err); ok {
		return failure.FailureKind()
	}
	return Unavailable
}

// Attributed is implemented by a Failure that may be due to a credential of the workload's
// author: with it the registry gave no usable response, and without it no failure shows that the
// registry is down.
type Attributed interface {
	error
	ByCredential() bool
}

// ByCredential reports whether err may be due to a credential of the workload's author. No
// failure setting may admit it, because the author would choose the verdict.
func ByCredential(err error) bool {
	failure, ok := errors.AsType[Attributed](err)
	return ok && failure.ByCredential()
}

// Error is the basic Failure: an operation, its object, and the cause.
type Error struct {
	Kind Kind   // the class of the failure
	Op   string // the operation, as in "fetch manifest"
	On   string // its object
	Err  error  // the cause; may be nil
}

// Error implements error.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s %s: %s", e.Op, e.On, e.Kind)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// FailureKind implements Failure.
func (e *Error) FailureKind() Kind { return e.Kind }
