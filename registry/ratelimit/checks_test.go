package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// TestWaitTime: for a short rest, if there is time, and never what can wait.
func TestWaitTime(t *testing.T) {
	for _, c := range []struct {
		reason     string
		after      string        // Retry-After
		time       time.Duration // that the caller has; 0 for all
		background bool
		waits      bool
	}{
		{"a short rest", "10", 0, false, true},
		{"a short rest, and as long a time", "10", 20 * time.Second, false, true},
		{"a short rest, and a shorter time", "10", 5 * time.Second, false, false},
		{"a short rest, and what can wait", "10", 0, true, false},
		{"a long rest, and all the time", "60", 0, false, false},
		{"a long rest, and time enough", "60", time.Hour, false, false},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ratelimit.New()
				_ = ask(t, b, hub, false, http.StatusTooManyRequests, headers("Retry-After", c.after))
				ctx := t.Context()
				if c.time > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.time)
					defer cancel()
				}
				begun := time.Now()
				ticket, err := b.Enter(ctx, hub, c.background)
				if took := time.Since(begun); (err == nil) != c.waits || !c.waits && took != 0 {
					t.Errorf("%v after %v", err, took)
				}
				if limited, is := errors.AsType[*ratelimit.LimitedError](err); err != nil && (!is || limited.Background != c.background || limited.Wait <= 0) {
					t.Errorf("%v", err)
				}
				if ticket != nil {
					ticket.Leave()
				}
			})
		})
	}
}

// TestOneOfFew: while few may ask, what can wait does not while admission does, and how
// many do is counted.
func TestOneOfFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, http.StatusTooManyRequests, nil)
		pass(3 * time.Minute) // also what can wait may ask again
		first, err := b.Enter(t.Context(), hub, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Enter(t.Context(), hub, true); err == nil {
			t.Error("what can wait asks beside admission")
		}
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Enter(brief, hub, false); err == nil {
			t.Error("two ask, and one may")
		}
		first.Leave() // without an answer: it is no sign that more may ask
		second, err := b.Enter(t.Context(), hub, true)
		if err != nil {
			t.Fatalf("no request is active, and background work may not enter: %v", err)
		}
		brief, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Enter(brief, hub, false); err == nil {
			t.Error("a request without an answer raised the concurrency")
		}
		second.Heard(http.StatusOK, nil)
		second.Leave()
		for range 2 { // after an answer two may
			brief, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := b.Enter(brief, hub, false); err != nil {
				t.Errorf("after an answer: %v", err)
			}
			if _, err := b.Enter(t.Context(), hub, true); err == nil {
				t.Error("with two permits, background work has one in parallel with admission")
			}
		}
	})
}

// TestWide: a registry that answered as many at once as are ever used is no longer counted;
// with one less it is.
func TestWide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, http.StatusTooManyRequests, nil)
		pass(time.Second)
		for range 63 { // one may ask, and one more with each
			_ = ask(t, b, hub, false, http.StatusOK, nil)
		}
		if b.Limited() != 1 {
			t.Error("it is held back no more, and 64 may ask")
		}
		_ = ask(t, b, hub, false, http.StatusOK, nil)
		if b.Limited() != 0 {
			t.Error("it is held back, and 65 may ask")
		}
	})
}

// TestHeardTwice: a request that was redirected and refused twice counts as one refusal; and
// one that was refused and then answered does not raise the concurrency.
func TestHeardTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for reason, second := range map[string]int{"refused again": http.StatusTooManyRequests, "answered then": http.StatusOK} {
			b := ratelimit.New()
			_ = ask(t, b, hub, false, http.StatusTooManyRequests, nil)
			pass(time.Second)
			ticket, err := b.Enter(t.Context(), hub, false)
			if err != nil {
				t.Fatal(err)
			}
			ticket.Heard(http.StatusTooManyRequests, nil)
			once := b.Rest(hub)
			ticket.Heard(second, nil)
			ticket.Leave()
			if rest := b.Rest(hub); rest != once {
				t.Errorf("%s: it rests %v, and did %v", reason, rest, once)
			}
			pass(time.Minute)
			if _, err := b.Enter(t.Context(), hub, false); err != nil {
				t.Fatal(err)
			}
			brief, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := b.Enter(brief, hub, false); err == nil {
				t.Errorf("%s: two may ask", reason)
			}
		}
		b := ratelimit.New()
		ticket, err := b.Enter(t.Context(), hub, false)
		if err != nil {
			t.Fatal(err)
		}
		ticket.Heard(http.StatusTooManyRequests, headers("Retry-After", "1"))
		ticket.Heard(http.StatusTooManyRequests, headers("Retry-After", "600"))
		if rest := b.Rest(hub); rest > 2*time.Second {
			t.Errorf("a second refusal of one question counts: it rests %v", rest)
		}
	})
}

// TestCare: how long an idle registry is held back after its rest.
func TestCare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, http.StatusTooManyRequests, nil)
		pass(b.Rest(hub) + 15*time.Minute)
		if b.Limited() != 1 {
			t.Error("at the end of its time it is held back no more")
		}
		pass(time.Nanosecond)
		if b.Limited() != 0 {
			t.Error("after its time it is held back")
		}
	})
}

// TestQuietIsNotCutShort: after a low remainder, a short refusal does not let background
// work start sooner.
func TestQuietIsNotCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, http.StatusOK, headers("Ratelimit-Limit", "100;w=600", "Ratelimit-Remaining", "10;w=600"))
		_ = ask(t, b, hub, false, http.StatusTooManyRequests, nil)
		pass(5 * time.Minute)
		if err := ask(t, b, hub, true, http.StatusOK, nil); err == nil {
			t.Error("what can wait asks before the window of ten minutes is over")
		}
		pass(10 * time.Minute)
		if err := ask(t, b, hub, true, http.StatusOK, nil); err != nil {
			t.Errorf("after the window: %v", err)
		}
		b = ratelimit.New()
		_ = ask(t, b, hub, false, http.StatusTooManyRequests, nil)
		pass(30 * time.Second)
		if err := ask(t, b, hub, true, http.StatusOK, nil); err == nil {
			t.Error("what can wait asks as soon as admission after a refusal")
		}
	})
}

// TestWindows: how long background work pauses, by the window that a registry reports.
func TestWindows(t *testing.T) {
	for _, c := range []struct {
		reason    string
		header    http.Header
		from, end time.Duration // it does not ask at from, and does at the end
	}{
		{"no window", headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "10"), 59 * time.Second, 76 * time.Second},
		{"a window", headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "10;w=300"), 299 * time.Second, 376 * time.Second},
		{"something else than a window", headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "10;x=300"), 59 * time.Second, 76 * time.Second},
		{"a window that is no number", headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "10;w=300;w=soon"), 299 * time.Second, 376 * time.Second},
		{"the end of the window", headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "10;w=300", "Ratelimit-Reset", "600"), 599 * time.Second, 751 * time.Second},
		{"an end that is no number", headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "10;w=300", "Ratelimit-Reset", "soon"), 299 * time.Second, 376 * time.Second},
	} {
		t.Run(c.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ratelimit.New()
				_ = ask(t, b, hub, false, http.StatusOK, c.header)
				pass(c.from)
				if err := ask(t, b, hub, true, http.StatusOK, nil); err == nil {
					t.Errorf("it asks after %v", c.from)
				}
				pass(c.end - c.from)
				if err := ask(t, b, hub, true, http.StatusOK, nil); err != nil {
					t.Errorf("after %v: %v", c.end, err)
				}
			})
		})
	}
}

// TestErrorsHaveNoRemainder: the rate limit headers of an error are ignored.
func TestErrorsHaveNoRemainder(t *testing.T) {
	low := headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "10")
	for status, kept := range map[int]int{http.StatusOK: 1, http.StatusTemporaryRedirect: 1, http.StatusBadRequest: 0} {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, status, low)
		if got := b.Kept(); got != kept {
			t.Errorf("%d: kept at %d", status, got)
		}
	}
	most := headers("Ratelimit-Limit", fmt.Sprint(1<<50), "Ratelimit-Remaining", fmt.Sprint(1<<49-1))
	b := ratelimit.New()
	_ = ask(t, b, hub, false, http.StatusOK, most)
	if b.Kept() != 1 {
		t.Error("the largest limit that is believed is not")
	}
	if n, ok := ratelimit.Remaining(headers("Ratelimit-Remaining", fmt.Sprint(int64(1)<<50+1))); ok {
		t.Errorf("a larger one is: %d", n)
	}
}

// TestEviction: of entries that hold no request back the one that was used longest
// ago, and of those that hold one back none while there is another.
func TestEviction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		named := func(i int) ratelimit.Account { return ratelimit.Account{Host: fmt.Sprint(i)} }
		plenty := headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "90")
		little := headers("Ratelimit-Limit", "100;w=900", "Ratelimit-Remaining", "10;w=900")
		_ = ask(t, b, hub, false, http.StatusOK, little) // holds back what can wait
		for i := range 4095 {
			pass(time.Millisecond)
			_ = ask(t, b, named(i), false, http.StatusOK, plenty)
		}
		pass(time.Millisecond)
		_ = ask(t, b, named(0), false, http.StatusOK, plenty) // asked about again
		pass(time.Millisecond)
		_ = ask(t, b, named(5000), false, http.StatusOK, little)
		if b.Remembered() != 4096 {
			t.Fatalf("%d are remembered", b.Remembered())
		}
		for i, want := range map[int]bool{0: true, 1: false, 2: true, 4094: true, 5000: true} {
			if got := b.Knows(named(i)); got != want {
				t.Errorf("%d is remembered: %t", i, got)
			}
		}
		if !b.Knows(hub) {
			t.Error("the entry that holds background work back is evicted before others that hold nothing back")
		}
	})
}

// TestHoldingEntriesAreEvictedLast: also one after its rest with a low concurrency, after all
// that hold nothing back; and of those that hold requests back the oldest.
func TestHoldingEntriesAreEvictedLast(t *testing.T) {
	named := func(i int) ratelimit.Account { return ratelimit.Account{Host: fmt.Sprint(i)} }
	plenty := headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "90")
	little := headers("Ratelimit-Limit", "100;w=900", "Ratelimit-Remaining", "10;w=900")
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, http.StatusTooManyRequests, nil)
		pass(3 * time.Minute)
		for i := range 4096 {
			_ = ask(t, b, named(i), false, http.StatusOK, plenty)
		}
		if !b.Knows(hub) {
			t.Error("an entry with a low concurrency is evicted before others that hold nothing back")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, http.StatusTooManyRequests, nil)
		pass(time.Second)
		asking, err := b.Enter(t.Context(), hub, false)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4094 {
			pass(time.Millisecond)
			_ = ask(t, b, named(i), false, http.StatusOK, little)
		}
		pass(time.Millisecond)
		_ = ask(t, b, named(5000), false, http.StatusOK, plenty)
		pass(time.Millisecond)
		_ = ask(t, b, named(5001), false, http.StatusOK, little)
		if b.Knows(named(5000)) || !b.Knows(hub) || !b.Knows(named(0)) {
			t.Error("the newest is kept, which holds nothing back")
		}
		_ = ask(t, b, named(5002), false, http.StatusOK, little)
		if b.Knows(hub) || !b.Knows(named(0)) || !b.Knows(named(4093)) {
			t.Error("the oldest is kept")
		}
		asking.Heard(http.StatusOK, nil)
		asking.Leave() // of an evicted entry
	})
}

// TestWithoutLimit: without a limit no request is counted, and an answer without a
// remainder changes nothing.
func TestWithoutLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, http.StatusOK, headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "90"))
		if _, err := b.Enter(t.Context(), hub, false); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Enter(t.Context(), hub, true); err != nil {
			t.Errorf("what can wait beside admission: %v", err)
		}
		_ = ask(t, b, hub, false, http.StatusOK, nil)
		if b.Kept() != 0 {
			t.Error("an answer without a remainder counts as one with none left")
		}
		_ = ask(t, b, hub, false, http.StatusOK, headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "10"))
		_ = ask(t, b, hub, false, http.StatusOK, nil)
		if b.Kept() != 1 {
			t.Error("an answer without a remainder lets background work enter")
		}
	})
}

// TestRestOfUnknownRegistries: requests to an unused registry are not delayed.
func TestRestOfUnknownRegistries(t *testing.T) {
	b := ratelimit.New()
	if b.Rest(hub) != 0 || b.Limited() != 0 {
		t.Error("a registry that was never asked rests")
	}
	for background, want := range map[bool]string{
		true: "the rest of the registry's rate limit is reserved for admission", false: "the registry limits how often it is asked",
	} {
		if got := (&ratelimit.LimitedError{Background: background, Wait: time.Second}).Error(); len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("background %t: %s", background, got)
		}
	}
}
