package registry

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/fairqueue"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// TestSharedWorkWaitsNoLongerThanItsCaller: shared work has 30 s, and its caller less. A
// registry that asked for 29 s is not waited for, so that the caller gets the reason in
// time, nor is one that answered 429 and lets one request through at a time.
func TestSharedWorkWaitsNoLongerThanItsCaller(t *testing.T) {
	for _, test := range []struct {
		reason string
		after  string
		caller time.Duration
		waits  bool
	}{
		{"a rest that ends after the caller", "20", 9 * time.Second, false},
		{"a rest that ends before the caller", "20", 28 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			book := ratelimit.New()
			concurrency, err := fairqueue.New(fairqueue.Bounds{Total: 1, PerHost: 1})
			if err != nil {
				t.Fatal(err)
			}
			client := &Client{limiter: book, concurrency: concurrency}
			account := ratelimit.Account{Host: "reg.example"}
			ticket, err := book.Enter(t.Context(), account, false)
			if err != nil {
				t.Fatal(err)
			}
			ticket.Heard(http.StatusTooManyRequests, http.Header{"Retry-After": {test.after}})
			ticket.Leave()
			flight, err := cache.NewFlight[string, struct{}](30 * time.Second)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.caller)
			defer cancel()
			began := time.Now()
			_, err = flight.Do(ctx, "key", func(ctx context.Context) (struct{}, error) {
				_, leave, err := client.enter(ctx, account)
				if err == nil {
					leave()
				}
				return struct{}{}, err
			})
			took := time.Since(began)
			if _, limited := errors.AsType[*ratelimit.LimitedError](err); limited == test.waits || (err == nil) != test.waits || !test.waits && took > 0 {
				t.Errorf("%s: %v after %v", test.reason, err, took)
			}
			failure := &Error{Kind: image.Unavailable, Status: http.StatusServiceUnavailable, Err: &retryAfterError{value: test.after}}
			_, err = flight.Do(ctx, "pause", func(ctx context.Context) (struct{}, error) {
				client.backoff = time.Millisecond
				return struct{}{}, client.pause(ctx, 1, request{turn: 2, repository: image.MustParse("reg.example/app").Repository()}, failure)
			})
			if !test.waits && err == nil {
				t.Errorf("%s: a retry was waited for", test.reason)
			}
		})
	}
}
