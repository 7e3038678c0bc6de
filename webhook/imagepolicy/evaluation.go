package imagepolicy

import (
	"context"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/webhook/internal/review"
)

// evaluation is one review and its result.
type evaluation struct {
	handler *Handler
	started time.Time

	images  images
	cause   Cause
	outcome gate.Outcome
	err     error
	busy    bool // see review.Result
}

// answer reads the review and decides it.
func (e *evaluation) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) (a answer) {
	defer func() {
		if p := recover(); p != nil {
			a = e.undecided(Panicked, review.PanicError(p))
		}
	}()
	body, err := e.handler.bodies.ReadJSON(ctx, w, r)
	defer body.Release()
	if err != nil {
		return e.undecided(review.ReadCause(err), err)
	}
	e.images, err = decode(body.Bytes)
	if err != nil {
		return e.undecided(Malformed, err)
	}
	if cause, err := e.decide(ctx); cause != Decided {
		return e.undecided(cause, err)
	}
	return decided(&e.outcome)
}

// decide waits for a slot and for the gate.
func (e *evaluation) decide(ctx context.Context) (Cause, error) {
	request, err := gate.ForImages(e.images.namespace, "", e.images.names)
	if err != nil {
		return Malformed, err
	}
	request.Pinning, request.Subject = gate.PinNever, e.subject()
	leave, err := e.handler.config.Queue.Enter(ctx, e.images.namespace)
	if err != nil {
		return review.QueueCause(err), err
	}
	result := review.Run(ctx, leave, func(ctx context.Context) (gate.Outcome, error) {
		unread := review.SetLabels(ctx, e.handler.config.Namespaces, &request.Subject)
		return e.handler.config.Decider.Decide(ctx, request), unread[e.images.namespace]
	})
	e.outcome, e.cause, e.err, e.busy = result.Value, result.Cause, result.Err, result.Busy
	return result.Cause, result.Err
}

// undecided answers a review without a decision. An unreadable review is denied: otherwise its
// writer could get it admitted.
func (e *evaluation) undecided(cause Cause, err error) answer {
	e.cause, e.err = cause, err
	if cause == Malformed {
		return answer{reason: review.Unverified + "\n  why: " + review.Plain(err.Error(), review.MaxField)}
	}
	if cause.Admits(e.handler.config.Failure, new(e.subject()), e.busy) {
		return answer{allowed: true}
	}
	return answer{reason: review.Unverified + "\n  why: " + cause.Sentence() + "\n  " + review.Next}
}

// subject returns the pod as far as a review describes it.
func (e *evaluation) subject() policy.Subject {
	return policy.Subject{
		Version: "v1", Kind: "Pod", Namespace: e.images.namespace, Operation: "CREATE", Shape: policy.Shape{Bare: true}, Time: e.started,
	}
}
