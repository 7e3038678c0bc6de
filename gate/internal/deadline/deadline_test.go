package deadline

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
)

func TestMark(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	unavailable := &image.Error{Kind: image.Unavailable, Op: "resolve", On: "registry.example/a", Err: context.Canceled}
	for _, c := range []struct {
		reason string
		ctx    context.Context
		err    error
		want   bool
	}{
		{"no error", over, nil, false},
		{"the request has time left", t.Context(), unavailable, false},
		{"the end of the request caused it", over, unavailable, true},
		{"another cause", over, errors.New("the manifest is malformed"), false},
	} {
		err := Mark(c.ctx, c.err)
		_, marked := errors.AsType[Exceeded](err)
		if marked != c.want || c.err != nil && err.Error() != c.err.Error() {
			t.Errorf("%s: got %#v", c.reason, err)
		}
		if marked && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: not a deadline", c.reason)
		}
		if _, fetched := errors.AsType[image.Failure](err); marked && fetched {
			t.Errorf("%s: still a failure of the registry", c.reason)
		}
	}
}

// TestMarkedGap: a gap that the end of the request caused is one of the same repository.
func TestMarkedGap(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	repository := image.MustParse("registry.example/app").Repository()
	for reason, gap := range map[string]error{
		"a gap":           attest.Gap{Repository: repository, Where: "referrers", Err: context.DeadlineExceeded},
		"within an error": fmt.Errorf("search: %w", attest.Gap{Repository: repository, Where: "referrers", Err: context.Canceled}),
	} {
		err := Mark(over, gap)
		if of, ok := errors.AsType[attest.Gap](err); !ok || of.Repository != repository || err.Error() != gap.Error() {
			t.Errorf("%s: got %#v", reason, err)
		}
	}
	if _, ok := errors.AsType[attest.Gap](Mark(over, context.DeadlineExceeded)); ok {
		t.Error("another error is a gap")
	}
}

// TestMarkedVolume: a search of which the registry answered many requests reached a bound.
func TestMarkedVolume(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	repository := image.MustParse("registry.example/app").Repository()
	for steps, want := range map[int64]image.Kind{1: image.Unavailable, MaxAnswered: image.Unavailable, MaxAnswered + 1: image.Bound} {
		search := fmt.Errorf("search for evidence: %w", &cache.UnfinishedError{Steps: steps, Err: context.DeadlineExceeded})
		for reason, err := range map[string]error{"a gap": attest.Gap{Repository: repository, Where: "app", Err: search}, "an error": search} {
			marked := Mark(over, err)
			gap, isGap := errors.AsType[attest.Gap](marked)
			if image.KindOf(marked) != want || errors.Is(marked, context.DeadlineExceeded) != (want == image.Unavailable) {
				t.Errorf("%s after %d answers: %v", reason, steps, marked)
			}
			if isGap != (reason == "a gap") || isGap && gap.Repository != repository {
				t.Errorf("%s after %d answers: a gap %t", reason, steps, isGap)
			}
			if Mark(t.Context(), err) != err { //nolint:errorlint // the same value
				t.Errorf("%s after %d answers: marked with time left", reason, steps)
			}
		}
	}
}

func TestIsUnresponsive(t *testing.T) {
	for _, c := range []struct {
		reason string
		err    error
		want   bool
	}{
		{"no error", nil, false},
		{"a deadline", context.DeadlineExceeded, true},
		{"no answer", &image.Error{Kind: image.Unavailable}, true},
		{"an answer", &image.Error{Kind: image.NotFound}, false},
		{"another error", errors.New("a defect"), false},
	} {
		if got := IsUnresponsive(c.err); got != c.want {
			t.Errorf("%s: got %t", c.reason, got)
		}
	}
}

// slow is a failure that knows its next step.
type slow struct{ error }

// Advice implements image.Advised.
func (slow) Advice() string { return "check the network to registry.example" }

// Unwrap returns the cause.
func (s slow) Unwrap() error { return s.error }

// TestReasonOfDeadline: the next step of the end of a request's time names the service that took it, where the
// cause knows it.
func TestReasonOfDeadline(t *testing.T) {
	over, cancel := context.WithCancel(t.Context())
	cancel()
	known := slow{fmt.Errorf("resolve: %w; check the network to registry.example", context.DeadlineExceeded)}
	for reason, c := range map[string]struct {
		err  error
		want string
	}{
		"a cause that knows it": {known, "check the network to registry.example"},
		"within another error":  {fmt.Errorf("search: %w", known), "check the network to registry.example"},
		"one that does not":     {context.DeadlineExceeded, hint.Of(policy.TimedOut)},
	} {
		if got := Reason(Mark(over, c.err), "spec"); got.Code != policy.TimedOut || got.Hint != c.want {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}
