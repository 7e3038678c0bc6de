package deadline

import (
	"context"
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
)

// Reason returns the reason for an error of a step.
func Reason(err error, path string) policy.Reason {
	if errors.Is(err, context.DeadlineExceeded) && !image.ByCredential(err) {
		return policy.LookReason(Exceeded{err}, path)
	}
	if _, fetched := errors.AsType[image.Failure](err); fetched && image.KindOf(err) == image.Unavailable {
		return policy.LookReason(err, path)
	}
	return policy.Reason{Code: policy.PolicyError, Path: path, Message: err.Error()}
}

// IsOwn reports whether the time for the request has expired, and was spent on the
// request itself and not on waiting for others. That is not an unresponsive registry: the
// author of an object controls how much work it causes.
func IsOwn(ctx context.Context) bool { return ctx.Err() != nil && !waittime.Mostly(ctx) }

// Overlong is an error that occurred because the request's own work took its time.
type Overlong struct{ Err error }

// Error implements error.
func (o Overlong) Error() string { return tookLong + ": " + o.Err.Error() }

// tookLong is the reason's text where IsOwn reports the cause.
const tookLong = "the work for the rules took all the time"

// Reasons marks reasons caused by an expired deadline as time spent on the object
// itself.
func Reasons(ctx context.Context, reasons []policy.Reason) []policy.Reason {
	if !IsOwn(ctx) {
		return reasons
	}
	reasons = slices.Clone(reasons)
	for i := range reasons {
		if r := &reasons[i]; r.Code == policy.TimedOut {
			r.Code, r.Message, r.Hint = policy.TooMuch, tookLong+": "+r.Message, hint.SmallerObject
		}
	}
	return reasons
}

// RulingReasons marks a rule's failure as an expired deadline where that is the cause. A
// limit or a defect keeps its own reason at any time.
func RulingReasons(ctx context.Context, ruling policy.Ruling) []policy.Reason {
	if ctx.Err() == nil || ruling.Result != policy.Indeterminate {
		return ruling.Reasons
	}
	if IsOwn(ctx) {
		return Reasons(ctx, ruling.Reasons)
	}
	reasons := slices.Clone(ruling.Reasons)
	for i := range reasons {
		if code := &reasons[i].Code; *code != policy.Internal && *code != policy.TooMuch {
			*code = policy.TimedOut
		}
	}
	return reasons
}
