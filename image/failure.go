package image

import (
	"errors"
	"fmt"
)

// Kind says how a fetch failed. Callers decide on it; the text is for people.
type Kind string

// The ways to fail to fetch.
const (
	// NotFound: the registry answered, and it is not there.
	NotFound Kind = "not-found"
	// Refused: the registry answered that we may not see it (401, 403).
	Refused Kind = "refused"
	// Unavailable: no usable answer (network, timeout, 429, 5xx).
	Unavailable Kind = "unavailable"
	// Bound: there was more than we are willing to read.
	Bound Kind = "bound"
	// Corrupt: the answer contradicts itself or its digest.
	Corrupt Kind = "corrupt"
)

// Failure is an error that knows its Kind. Errors of packages that fetch
// satisfy it, so that KindOf finds the kind behind any wrapping.
type Failure interface {
	error
	FailureKind() Kind
}

// KindOf returns the kind of the first Failure in err's chain, Unavailable for
// any other error (what is not understood was not looked at), and "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if failure, ok := errors.AsType[Failure](err); ok {
		return failure.FailureKind()
	}
	return Unavailable
}

// Attributed is implemented by a Failure that may be due to a credential that the author of
// a workload chose: with it the registry gave no usable answer, and without it there is no
// failure that shows the registry to be down.
type Attributed interface {
	error
	ByCredential() bool
}

// ByCredential reports whether err may be due to a credential that the author of a workload
// chose. No failure setting may admit it: the author would choose the verdict.
func ByCredential(err error) bool {
	failure, ok := errors.AsType[Attributed](err)
	return ok && failure.ByCredential()
}

// Error is the plain Failure: an operation, what it was done to, and why it
// did not work.
type Error struct {
	Kind Kind   // how it failed
	Op   string // what was being done, as in "fetch manifest"
	On   string // to what
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
