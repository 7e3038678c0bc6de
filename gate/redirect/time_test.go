package redirect_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// TestASlowCandidateHasItsShare, and no more: 2 s, and a third of the time left.
func TestASlowCandidateHasItsShare(t *testing.T) {
	slow := &target{hangs: true}
	for _, test := range []struct {
		reason  string
		targets []*target
		left    time.Duration
		states  string
		took    time.Duration
	}{
		{"much time", []*target{slow, {tag: wanted}}, time.Minute, "failed chosen", 2*time.Second + trip},
		{"little time", []*target{slow, {tag: wanted}}, 3 * time.Second, "failed chosen", time.Second + trip},
		{"two of them", []*target{slow, slow, {tag: wanted}}, 3 * time.Second, "failed failed chosen", time.Second + 2*time.Second/3 + trip},
		{"one that does not heed its context", []*target{{deaf: true}, {tag: wanted}}, time.Minute, "failed chosen", 2*time.Second + trip},
	} {
		t.Run(test.reason, func(t *testing.T) {
			bubble(t, test.targets, func(t *testing.T, c *redirect.Chooser, f *fleet) {
				start := time.Now()
				choice := c.Choose(within(t, test.left), f.question(":v1"), nil, wanted)
				want(t, "states", states(choice.Attempts), test.states)
				if took := time.Since(start); took.Round(time.Millisecond) != test.took.Round(time.Millisecond) {
					t.Errorf("after %s, want %s", took, test.took)
				}
				if err := choice.Attempts[0].Err; image.KindOf(err) != image.Unavailable || !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
			})
		})
	}
}

// TestADeafSession: Begin leaves no goroutine for one, and the next candidate is asked in time.
func TestADeafSession(t *testing.T) {
	bubble(t, []*target{{deaf: true}, {tag: wanted}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		q := f.question(":v1")
		early := c.Begin(t.Context(), q)
		time.Sleep(3 * time.Second) //nolint:forbidigo // of the bubble's clock
		start := time.Now()
		choice := c.Choose(t.Context(), q, early, wanted)
		want(t, "states", states(choice.Attempts), "failed chosen")
		if took := time.Since(start); took != trip || choice.Attempts[0].Took != 2*time.Second {
			t.Errorf("after %s: %+v", took, choice.Attempts)
		}
	})
}

// TestNoTimeLeft: Choose answers at once, with what memory knows.
func TestNoTimeLeft(t *testing.T) {
	bubble(t, []*target{{}, {tag: wanted}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		q := f.question(":v1")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if early := c.Begin(ctx, q); early != nil {
			t.Error("Begin asks")
		}
		start := time.Now()
		choice := c.Choose(ctx, q, nil, wanted)
		want(t, "states", states(choice.Attempts), "failed failed")
		if _, _, err := c.Resolve(ctx, q, nil); image.KindOf(err) != image.Unavailable {
			t.Error(err)
		}
		want(t, "requests", f.requests(), "")
		if time.Since(start) != 0 {
			t.Error("it waited")
		}
		c.Choose(t.Context(), q, nil, wanted)
		choice = c.Choose(ctx, q, nil, wanted)
		want(t, "states", states(choice.Attempts), "missing chosen")
	})
}

// TestTheRequestEndsInBetween: while the first candidate is asked.
func TestTheRequestEndsInBetween(t *testing.T) {
	bubble(t, []*target{{hangs: true}, {tag: wanted}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(trip, cancel)
		start := time.Now()
		choice := c.Choose(ctx, f.question(":v1"), nil, wanted)
		want(t, "states", states(choice.Attempts), "failed failed")
		want(t, "requests", f.requests(), "m1.example/app:v1")
		if took := time.Since(start); took != trip {
			t.Errorf("after %s", took)
		}
	})
}

// TestAnAnswerThatComesLate is cached: the request continues after its caller left, and ends by
// itself.
func TestAnAnswerThatComesLate(t *testing.T) {
	bubble(t, []*target{{tag: wanted, slow: 1500 * time.Millisecond}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		q := f.question(":v1")
		choice := c.Choose(within(t, 3*time.Second), q, nil, wanted)
		want(t, "states", states(choice.Attempts), "failed")
		time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
		if _, known := c.Remembered(t.Context(), q, wanted); !known {
			t.Error("it is not remembered")
		}
	})
}

// TestWaitingForAnEarlyAnswer takes from its own share.
func TestWaitingForAnEarlyAnswer(t *testing.T) {
	bubble(t, []*target{{hangs: true}, {tag: wanted}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		q := f.question(":v1")
		early := c.Begin(t.Context(), q)
		time.Sleep(trip) //nolint:forbidigo // of the bubble's clock
		start := time.Now()
		choice := c.Choose(within(t, 3*trip), q, early, wanted)
		want(t, "states", states(choice.Attempts), "failed failed")
		if took := time.Since(start); took != trip+2*trip/3 {
			t.Errorf("after %s", took)
		}
		time.Sleep(3 * time.Second) //nolint:forbidigo // of the bubble's clock: the early question has failed
		start = time.Now()
		choice = c.Choose(t.Context(), q, early, wanted)
		want(t, "states", states(choice.Attempts), "failed chosen")
		if took := time.Since(start); took != 0 { // the second is remembered since
			t.Errorf("after %s", took)
		}
		want(t, "requests", f.requests(), "m1.example/app:v1 m2.example/app:v1")
	})
}

// TestHealthIsReported: once for each request, by its caller, and a timeout only where the
// registry had the whole time.
func TestHealthIsReported(t *testing.T) {
	for _, test := range []struct {
		reason string
		target *target
		left   time.Duration
		told   string // at once
		later  string
	}{
		{"it answers", &target{tag: wanted}, time.Minute, "m1.example ok", ""},
		{"it has not got it", &target{}, time.Minute, "m1.example not-found, m1.example not-found", ""},
		{"it refuses", &target{err: failure(image.Refused)}, time.Minute, "m1.example refused", ""},
		{"it lies", &target{lies: true}, time.Minute, "m1.example corrupt", ""},
		{"no connection", &target{err: failure(image.Unavailable)}, time.Minute, "m1.example unavailable", ""},
		{"it hangs", &target{hangs: true}, time.Minute, "m1.example unavailable", ""},
		{"it hangs, with a short deadline", &target{hangs: true}, time.Second, "", "m1.example unavailable"},
		{"it is slow, with a short deadline", &target{tag: wanted, slow: time.Second}, time.Second, "", "m1.example ok"},
		{"our own defect", &target{panics: "resolve"}, time.Minute, "", ""},
		{"no credential", &target{unopened: errors.New("no secret")}, time.Minute, "", ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			h := &recordingHealth{}
			bubble(t, []*target{test.target}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
				c.Choose(within(t, test.left), f.question(":v1"), nil, wanted)
				synctest.Wait()
				want(t, "reported", h.tellings(), test.told)
				time.Sleep(time.Minute) //nolint:forbidigo // of the bubble's clock
				want(t, "reported later", h.tellings(), test.later)
			}, redirect.WithHealth(h))
		})
	}
}

// TestResting: a resting registry is not asked, in any mode.
func TestResting(t *testing.T) {
	fills := func(r *mirror.Route) { always(r); filling(r) }
	for _, test := range []struct {
		reason   string
		resting  string
		change   func(*mirror.Route)
		chosen   string
		states   string
		requests string
	}{
		{"the first", "m1", nil, "m2.example/app:v1@wanted", "resting chosen", "m2.example/app:v1"},
		{"the second", "m2", nil, "m1.example/app:v1@wanted", "chosen not-asked", "m1.example/app:v1"},
		{"all", "m1 m2", nil, "", "resting resting", ""},
		{"the first, always", "m1", always, "m2.example/app:v1@wanted", "resting chosen", ""},
		{"all, always", "m1 m2", always, "m1.example/app:v1@wanted", "chosen resting", ""},
		{"the first, always, filling", "m1", fills, "m2.example/app:v1@wanted", "resting chosen", "m2.example/app:v1"},
		{"all, always, filling", "m1 m2", fills, "m1.example/app:v1@wanted", "chosen resting", ""},
	} {
		t.Run(test.reason, func(t *testing.T) {
			h := &recordingHealth{resting: map[string]string{}}
			for name := range strings.FieldsSeq(test.resting) {
				h.resting[name+".example"] = "connection refused"
			}
			bubble(t, []*target{{tag: wanted}, {tag: wanted}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
				var change []func(*mirror.Route)
				if test.change != nil {
					change = append(change, test.change)
				}
				q := f.question(":v1", change...)
				choice := c.Choose(t.Context(), q, c.Begin(t.Context(), q), wanted)
				want(t, "chosen", short(choice.Target), test.chosen)
				want(t, "states", states(choice.Attempts), test.states)
				want(t, "requests", f.requests(), test.requests)
				for _, a := range choice.Attempts {
					if a.State == redirect.Resting && !strings.Contains(a.Err.Error(), "connection refused") {
						t.Error(a.Err)
					}
				}
				if _, known := c.Remembered(t.Context(), q, wanted); !known {
					t.Error("the resting candidate is not cached")
				}
			}, redirect.WithHealth(h))
		})
	}
}

// TestADeadFirstTargetCostsItsTimeoutOnce: then nothing, however much it is known to
// have.
func TestADeadFirstTargetCostsItsTimeoutOnce(t *testing.T) {
	h := &recordingHealth{resting: map[string]string{}, trips: true}
	bubble(t, []*target{{tag: wanted}, {tag: wanted}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		c.Choose(t.Context(), f.question("@"+wanted.String()), nil, wanted)
		f.targets["m1.example/app"].hangs = true
		for _, wait := range []time.Duration{2*time.Second + trip, 0, 0} {
			start := time.Now()
			q := f.question(":v2")
			// Two questions: its tag is not remembered, and its digest no longer counts.
			q.Route.Candidates[0].Ref = image.MustParse("m1.example/app:v2")
			f.targets["m1.example/app"].scope = "new"
			choice := c.Choose(t.Context(), q, c.Begin(t.Context(), q), wanted)
			if took := time.Since(start); took != wait {
				t.Errorf("%s after %s, want %s", states(choice.Attempts), took, wait)
			}
		}
		choice := c.Choose(t.Context(), f.question("@"+wanted.String()), nil, wanted)
		want(t, "states", states(choice.Attempts), "resting chosen")
	}, redirect.WithHealth(h))
}

// TestSilenceInBetween: a candidate that stops answering between its tag and its digest is not
// asked again.
func TestSilenceInBetween(t *testing.T) {
	h := &recordingHealth{resting: map[string]string{}}
	bubble(t, []*target{{tag: stale, has: []image.Digest{wanted}}}, func(t *testing.T, c *redirect.Chooser, f *fleet) {
		q := f.question(":v1")
		early := c.Begin(t.Context(), q)
		synctest.Wait()
		time.Sleep(trip) //nolint:forbidigo // of the bubble's clock
		synctest.Wait()
		h.resting["m1.example"] = "silence"
		choice := c.Choose(t.Context(), q, early, wanted)
		want(t, "states", states(choice.Attempts), "resting")
		want(t, "requests", f.requests(), "m1.example/app:v1")
		if choice.Attempts[0].Tag != stale {
			t.Errorf("%+v", choice.Attempts)
		}
	}, redirect.WithHealth(h))
}
