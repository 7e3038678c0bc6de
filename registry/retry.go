package registry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/registry/internal/content"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// send returns the first answer that a try with one of the credentials gets.
func (r *requester) send(ctx context.Context, q request) (*answer, error) {
	a := &attempts{requester: r, request: q}
	a.request.turn, a.settled = r.working.Get(q.repository.String())
	if deadline, bounded := cache.CallerDeadline(ctx); bounded && r.credentials.haveForeign() {
		a.end = deadline.Add(-min(errorMargin, time.Until(deadline)/10))
	}
	for n := 1; ; n++ {
		if got := a.pass(ctx); got != nil {
			return got, nil
		}
		m := a.decisive()
		if !m.failure.Temporary() || n == maxAttempts || a.isOver(ctx) {
			return nil, a.failure(m)
		}
		q.turn, a.isAgain = m.turn, true
		if r.pause(ctx, n, q, m.failure) != nil {
			return nil, a.failure(m)
		}
	}
}

// pause waits before the next try, at least as long as the registry requires. A wait that would end
// after the deadline does not start.
func (r *requester) pause(ctx context.Context, attempt int, q request, failure *Error) error {
	wait := jitter(r.backoff << (attempt - 1))
	if asked, ok := errors.AsType[*retryAfterError](failure.Err); ok && (failure.away || failure.Status != http.StatusTooManyRequests) {
		wait = max(wait, ratelimit.RetryAfter(asked.value, time.Now()))
	}
	if rest := r.limiter.Rest(r.account(q, r.schemes.origin(q.repository).Host)); rest > 0 { // after a 429: shared by all requests to the account
		wait = rest
	}
	deadline, limited := cache.CallerDeadline(ctx)
	switch {
	case wait > maxRetryWait:
		failure.Hint = fmt.Sprintf("the registry accepts the next request in %v; try again then", wait.Round(time.Second))
		return failure
	case limited && time.Now().Add(wait).After(deadline):
		failure.Hint = fmt.Sprintf("the next retry in %v is after the deadline: allow more time (--timeout)", wait.Round(time.Millisecond))
		return failure
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return failure
	}
}

// jitter returns between half of d and d, so that clients that failed together do not retry together.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// retryAfterError is the Retry-After header of a refusal, and its cause.
type retryAfterError struct {
	value string
	err   error
}

// Error implements error.
func (r *retryAfterError) Error() string {
	text := "retry after " + content.Shorten(r.value)
	if r.err != nil {
		text = r.err.Error() + ", " + text
	}
	return text
}

// Unwrap returns the cause of the refusal.
func (r *retryAfterError) Unwrap() error { return r.err }
