package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/content"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// pause waits before the next try, as long as the registry asks for. A wait
// that would end after the deadline is not begun.
func (r *requester) pause(ctx context.Context, attempt int, q request, failure *Error) error {
	wait := jitter(r.backoff << (attempt - 1))
	if asked, ok := errors.AsType[*retryAfterError](failure.Err); ok && (failure.away || failure.Status != http.StatusTooManyRequests) {
		wait = max(wait, ratelimit.RetryAfter(asked.value, time.Now()))
	}
	if rest := r.limiter.Rest(r.account(q, r.schemes.origin(q.repository).Host)); rest > 0 { // of a 429: everybody's
		wait = rest
	}
	deadline, limited := cache.CallerDeadline(ctx)
	switch {
	case wait > maxRetryWait:
		failure.Hint = fmt.Sprintf("the registry accepts the next request in %v; try again then", wait.Round(time.Second))
		return failure
	case limited && time.Now().Add(wait).After(deadline):
		failure.Hint = fmt.Sprintf("it could be asked again in %v, which is after the deadline", wait.Round(time.Millisecond))
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

// jitter returns between half of d and d, so that clients that failed together
// do not come back together.
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

// notAsked is the Error of a question that was never sent.
func notAsked(q request, err error) *Error {
	failure := q.fail(image.Unavailable, err)
	_, failure.rests = errors.AsType[*ratelimit.LimitedError](err)
	failure.final = failure.rests || errors.Is(err, errNoSeat)
	return failure
}

// isCertificateError reports whether TLS did not trust the registry.
func isCertificateError(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// isCertificateWanted reports whether the host ended TLS because it requires another
// client certificate. The alert (RFC 8446, section 6.2) has no exported type; all
// certificate alerts from the other side concern the client's certificate.
func isCertificateWanted(err error) bool {
	failure, ok := errors.AsType[*net.OpError](err)
	return ok && failure.Op == "remote error" && strings.Contains(failure.Err.Error(), "certificate")
}

// kindIs reports whether err is a Failure of the kind.
func kindIs(err error, kind image.Kind) bool { return image.KindOf(err) == kind }
