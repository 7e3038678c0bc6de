// Package deadline distinguishes the end of a request's own time from the failures of registries.
package deadline

import (
	"context"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/cache"
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

// Advice implements image.Advised: the cause knows which service and step took the time.
func (e Exceeded) Advice() string { return image.Advice(e.Err) }

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

// MaxAnswered is how many requests of a search for evidence may be answered before the request's time
// ends, for the failure to count as a slow registry's. An image has some tens of documents. With more,
// their volume takes the time: a user with push access adds any number, and must not choose the failure.
const MaxAnswered = 64

// Mark returns err, as Exceeded if the end of ctx caused it. A failure that the pod's author may
// have caused by a credential stays one. Where the registry answered many requests of a search, the
// volume of evidence caused it, which is a bound.
func Mark(ctx context.Context, err error) error {
	if ctx.Err() == nil || image.ByCredential(err) || !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return err
	}
	search, ok := errors.AsType[*cache.UnfinishedError](err)
	if !ok || search.Steps <= MaxAnswered {
		return Exceeded{err}
	}
	bound := &image.Error{
		Kind: image.Bound, Op: "read", On: "the evidence in the time for the request",
		Err: fmt.Errorf("the registry answered more than MaxAnswered (%d) requests, and there is more", MaxAnswered),
	}
	if gap, ok := errors.AsType[attest.Gap](err); ok {
		gap.Err = bound
		return gap
	}
	return bound
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
