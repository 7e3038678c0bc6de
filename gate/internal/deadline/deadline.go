// Package deadline distinguishes the end of a request's own time from the failures of registries.
package deadline

import (
	"context"
	"errors"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
)

// Exceeded marks an error that occurred because the request's time had expired, whatever
// its cause looks like.
type Exceeded struct{ Err error }

// Error implements error.
func (e Exceeded) Error() string { return e.Err.Error() }

// Unwrap returns the deadline and not the cause, which may call itself a failure
// of the registry.
func (Exceeded) Unwrap() error { return context.DeadlineExceeded }

// As implements errors.As for gaps alone: the end of the request's time does not change which
// repository could not be read.
func (e Exceeded) As(target any) bool {
	gap, ok := target.(*attest.Gap)
	if !ok {
		return false
	}
	found, ok := errors.AsType[attest.Gap](e.Err)
	if ok {
		*gap = found
	}
	return ok
}

// Mark returns err, as Exceeded if the end of ctx caused it. A failure that the pod's author may
// have caused by a credential stays one.
func Mark(ctx context.Context, err error) error {
	if ctx.Err() != nil && !image.ByCredential(err) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return Exceeded{err}
	}
	return err
}

// IsUnresponsive reports whether a step failed because a service did not answer, and not
// because of the object's content.
func IsUnresponsive(err error) bool {
	if image.ByCredential(err) {
		return false
	}
	_, fetched := errors.AsType[image.Failure](err)
	return errors.Is(err, context.DeadlineExceeded) || fetched && image.KindOf(err) == image.Unavailable
}
