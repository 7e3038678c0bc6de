package policy_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// TestLookReason: the cause of an error decides whether a stale answer is used and which fix is
// suggested, so each has its own code.
func TestLookReason(t *testing.T) {
	of := func(kind image.Kind) error { return &image.Error{Kind: kind, Op: "ask", On: "registry"} }
	for _, c := range []struct {
		reason string
		err    error
		want   policy.Code
	}{
		{"trust is missing", errors.New("no root"), policy.CannotProve},
		{"others took the time", policy.ErrCrowdedOut, policy.TooMuch},
		{"others took the time of a look", fmt.Errorf("ask: %w", policy.ErrCrowdedOut), policy.TooMuch},
		{"the time is over", context.DeadlineExceeded, policy.TimedOut},
		{"the time of a look is over", fmt.Errorf("ask: %w", context.DeadlineExceeded), policy.TimedOut},
		{"the request was cancelled, which is no deadline", context.Canceled, policy.CannotProve},
		{"it is not there", of(image.NotFound), policy.ImageNotFound},
		{"we may not", of(image.Refused), policy.AccessRefused},
		{"it is too much", of(image.Bound), policy.TooMuch},
		{"it contradicts itself", of(image.Corrupt), policy.Contradiction},
		{"no response", of(image.Unavailable), policy.Unavailable},
		{"a failure of the registry within another error", fmt.Errorf("ask: %w", of(image.NotFound)), policy.ImageNotFound},
	} {
		if got := policy.LookReason(c.err, "spec"); got.Code != c.want || got.Path != "spec" || got.Message != c.err.Error() || got.Hint == "" {
			t.Errorf("%s: %+v, want %s", c.reason, got, c.want)
		}
	}
}

// advised is an error that knows what to do.
type advised string

func (advised) Error() string    { return "no TLS; set --plain-http" }
func (a advised) Advice() string { return string(a) }

// TestLookReasonAdvice: the next step follows from the cause, and is not there twice.
func TestLookReasonAdvice(t *testing.T) {
	for _, c := range []struct{ reason, advice, message, next string }{
		{"advice of the cause", "set --plain-http", "ask: no TLS", "set --plain-http"},
		{"none", "", "ask: no TLS; set --plain-http", policy.LookReason(errors.New("other"), "").Hint},
	} {
		got := policy.LookReason(fmt.Errorf("ask: %w", advised(c.advice)), "spec")
		if got.Message != c.message || got.Hint != c.next {
			t.Errorf("%s: %q, next %q", c.reason, got.Message, got.Hint)
		}
	}
}
