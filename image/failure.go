package image

import (
	"errors"
	"fmt"
	"strings"
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
	// Corrupt: the response contradicts itself or its digest, or rejects the request (other 4xx).
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

// Advised is a Failure that knows what to do about it.
type Advised interface {
	error
	Advice() string
}

// Advice returns what to do about an error; empty if that is not known. It is the end of the error's
// text, after a semicolon.
func Advice(err error) string {
	if failure, ok := errors.AsType[Advised](err); ok {
		return failure.Advice()
	}
	return ""
}

// SplitAdvice returns the text of an error without the advice at its end, and the advice.
func SplitAdvice(err error) (text, advice string) {
	text, advice = err.Error(), Advice(err)
	if advice != "" {
		text = strings.TrimSuffix(text, "; "+advice)
	}
	return text, advice
}

// HostError is a cause of an Unavailable failure that the choice of the host brings about: an address
// that is never connected to, or a host without trusted TLS. The author of a workload chooses the host,
// so no failure setting may admit it.
type HostError struct{ Err error }

// Error implements error.
func (e *HostError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *HostError) Unwrap() error { return e.Err }

// IsByHost reports whether err has a HostError in its chain.
func IsByHost(err error) bool {
	_, ok := errors.AsType[*HostError](err)
	return ok
}

// ContentError is a cause of a Failure that a user with push access can bring about: content above
// a bound, or unlike what its descriptor says. Any other answer that contradicts itself is due to
// the registry, to what is between, or to an incomplete copy, and shows nothing about the content.
type ContentError struct{ Err error }

// Error implements error.
func (e *ContentError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ContentError) Unwrap() error { return e.Err }

// IsByContent reports whether err has a ContentError in its chain.
func IsByContent(err error) bool {
	_, ok := errors.AsType[*ContentError](err)
	return ok
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
