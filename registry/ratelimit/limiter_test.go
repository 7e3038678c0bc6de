package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

var hub = ratelimit.Account{Host: "hub.example"}

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// ask asks once, and is answered so.
func ask(t testing.TB, b *ratelimit.Limiter, account ratelimit.Account, background bool, status int, header http.Header) error {
	t.Helper()
	ticket, err := b.Enter(t.Context(), account, background)
	if err != nil {
		return err
	}
	ticket.Heard(status, header)
	ticket.Leave()
	return nil
}

// pass lets time pass in a bubble.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // of the bubble's clock
	synctest.Wait()
}

// TestAdmittedAfterAnswer: which requests are admitted at once after one answer.
func TestAdmittedAfterAnswer(t *testing.T) {
	for _, test := range []struct {
		reason            string
		status            int
		header            http.Header
		admission, others bool // may ask: admission, and what can wait
	}{
		{"an answer", 200, nil, true, true},
		{"not there", 404, nil, true, true},
		{"an error of its own", 503, headers("Retry-After", "60"), true, true},
		{"a limit for a minute", 429, headers("Retry-After", "60"), false, false},
		{"a limit for days", 429, headers("Retry-After", "999999"), false, false},
		{"half is left", 200, headers("Ratelimit-Limit", "100;w=21600", "Ratelimit-Remaining", "50;w=21600"), true, true},
		{"less than half is left", 200, headers("Ratelimit-Limit", "100;w=21600", "Ratelimit-Remaining", "49;w=21600"), true, false},
		{"less than half is left, of a HEAD", 200, headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "10"), true, false},
		{"nothing is left, and it answers", 200, headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "0"), true, false},
		{"the remainder is no number", 200, headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "few"), true, true},
		{"a negative number", 200, headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "-1"), true, true},
		{"a number beyond all", 200, headers("Ratelimit-Limit", "9223372036854775807", "Ratelimit-Remaining", "4611686018427387904"), true, true},
		{"the limit is missing", 200, headers("Ratelimit-Remaining", "3"), true, true},
		{"an error with a remainder", 500, headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "1"), true, true},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ratelimit.New()
				if err := ask(t, b, hub, false, test.status, test.header); err != nil {
					t.Fatal(err)
				}
				for _, account := range []ratelimit.Account{{Host: "other.example"}, {Host: hub.Host, Name: "team"}} {
					if err := ask(t, b, account, true, 200, nil); err != nil {
						t.Errorf("another account is held back: %v", err)
					}
				}
				if err := ask(t, b, hub, true, 200, nil); (err == nil) != test.others {
					t.Errorf("what can wait: %v", err)
				}
				brief, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := b.Enter(brief, hub, false)
				if (err == nil) != test.admission {
					t.Errorf("admission: %v", err)
				}
				var limited *ratelimit.LimitedError
				if err != nil && (!errors.As(err, &limited) || limited.Wait <= 0 || limited.Wait > 20*time.Minute) {
					t.Errorf("%v: want when to try again", err)
				}
			})
		})
	}
}

// TestRemainderRecovers: background work goes on when more remains, and probes by
// itself when no other request does.
func TestRemainderRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		low, high := headers("Ratelimit-Limit", "100;w=21600", "Ratelimit-Remaining", "20;w=21600"), headers("Ratelimit-Limit", "100;w=21600", "Ratelimit-Remaining", "90;w=21600")
		_ = ask(t, b, hub, false, 200, low)
		if b.Kept() != 1 || b.Limited() != 0 {
			t.Errorf("kept %d, limited %d", b.Kept(), b.Limited())
		}
		_ = ask(t, b, hub, false, 200, high)
		if err := ask(t, b, hub, true, 200, low); err != nil {
			t.Errorf("after admission has seen more: %v", err)
		}
		pass(19 * time.Minute)
		if err := ask(t, b, hub, true, 200, low); err != nil {
			t.Errorf("after a while: %v", err)
		}
		if err := ask(t, b, hub, true, 200, low); err == nil {
			t.Error("it asked on although less than half is left")
		}
	})
}

// TestTheMostThatWasLeft: a registry that does not say its limit is taken to have that
// of which most was left.
func TestTheMostThatWasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		for _, step := range []struct {
			left string
			may  bool
		}{{"80", true}, {"41", true}, {"39", false}} {
			_ = ask(t, b, hub, false, 200, headers("Ratelimit-Remaining", step.left))
			if err := ask(t, b, hub, true, 200, nil); (err == nil) != step.may {
				t.Errorf("%s left: %v", step.left, err)
			}
		}
	})
}

// TestAnHourOf429: a registry refuses for an hour, by each kind of refusal. Hundreds ask
// all the time; it is asked a few times, and answers again by itself.
func TestAnHourOf429(t *testing.T) {
	for _, test := range []struct {
		reason string
		header http.Header
		most   int64         // questions in the hour
		back   time.Duration // after which it is asked again at the latest
	}{
		{"without a time", nil, 24, 7 * time.Minute},
		{"at once", headers("Retry-After", "0"), 24, 7 * time.Minute},
		{"a minute each", headers("Retry-After", "60"), 24, 7 * time.Minute},
		{"an hour", headers("Retry-After", "3600"), 5, 19 * time.Minute},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ratelimit.New()
				var asked, answered, background atomic.Int64
				begun := time.Now()
				limited := func() bool { return time.Since(begun) < time.Hour }
				ctx, cancel := context.WithCancel(t.Context())
				var group sync.WaitGroup
				question := func(waits bool) {
					brief, done := context.WithTimeout(ctx, 10*time.Second)
					defer done()
					ticket, err := b.Enter(brief, hub, waits)
					if err != nil {
						return
					}
					defer ticket.Leave()
					asked.Add(1)
					if waits {
						background.Add(1)
					}
					time.Sleep(100 * time.Millisecond) //nolint:forbidigo // of the bubble's clock
					if limited() {
						ticket.Heard(429, test.header)
						return
					}
					ticket.Heard(200, nil)
					answered.Add(1)
				}
				_ = ask(t, b, hub, false, 429, test.header)
				for i := range 100 {
					group.Go(func() {
						for ctx.Err() == nil {
							question(i == 0)             // one of them is a scan
							time.Sleep(10 * time.Second) //nolint:forbidigo // of the bubble's clock
						}
					})
				}
				pass(time.Hour - time.Since(begun))
				if got := asked.Load(); got > test.most || got < 2 {
					t.Errorf("%d questions in an hour, want at most %d", got, test.most)
				}
				t.Logf("%d questions in the hour", asked.Load())
				if background.Load() != 0 {
					t.Errorf("%d questions of what can wait", background.Load())
				}
				pass(test.back)
				if answered.Load() < 100 {
					t.Errorf("%d answers after it was over", answered.Load())
				}
				pass(30 * time.Minute)
				if b.Limited() != 0 || background.Load() == 0 {
					t.Errorf("%d are held back, %d questions of what can wait", b.Limited(), background.Load())
				}
				cancel()
				group.Wait()
			})
		})
	}
}

// TestManyOnTheirWay: questions that were on their way when the first was refused are
// one refusal, and no reason to rest sixteen times as long.
func TestManyOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		var tickets []*ratelimit.Permit
		for range 16 {
			ticket, err := b.Enter(t.Context(), hub, false)
			if err != nil {
				t.Fatal(err)
			}
			tickets = append(tickets, ticket)
		}
		for _, ticket := range tickets {
			ticket.Heard(429, nil)
			ticket.Leave()
		}
		if rest := b.Rest(hub); rest > time.Second {
			t.Errorf("it rests %v", rest)
		}
	})
}

// TestOneAsksFirst: after a rest one question is let through, and more with each that
// is answered.
func TestOneAsksFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, 429, headers("Retry-After", "2"))
		var asking, answered atomic.Int64
		for range 100 {
			go func() {
				ticket, err := b.Enter(t.Context(), hub, false)
				if err != nil {
					t.Error(err)
					return
				}
				asking.Add(1)
				time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
				asking.Add(-1)
				answered.Add(1)
				ticket.Heard(200, nil)
				ticket.Leave()
			}()
		}
		pass(time.Second)
		if asking.Load() != 0 {
			t.Error("it was asked during its rest")
		}
		pass(1600 * time.Millisecond) // 2 s, and the random part
		for _, want := range []int64{1, 2, 4, 8, 16, 32} {
			if got := asking.Load(); got != want {
				t.Errorf("%d ask at once, want %d", got, want)
			}
			pass(time.Second)
		}
		pass(time.Minute)
		if answered.Load() != 100 || b.Limited() != 0 {
			t.Errorf("%d answered, %d held back", answered.Load(), b.Limited())
		}
	})
}

// TestUnusedRegistriesAreEvicted: a registry that refused once and is not used
// any more is not held back; one that goes on refusing is.
func TestUnusedRegistriesAreEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, 429, nil)
		pass(10 * time.Minute)
		if b.Limited() != 1 || b.Kept() != 1 {
			t.Errorf("after ten minutes: %d are held back, %d kept", b.Limited(), b.Kept())
		}
		pass(30 * time.Minute)
		if b.Limited() != 0 || b.Kept() != 0 {
			t.Errorf("after forty minutes: %d are held back, %d kept", b.Limited(), b.Kept())
		}
		var tickets []*ratelimit.Permit
		for range 16 {
			brief, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			ticket, err := b.Enter(brief, hub, false)
			if err != nil {
				t.Fatalf("the questions after it: %v", err)
			}
			tickets = append(tickets, ticket)
		}
		for _, ticket := range tickets {
			ticket.Heard(429, headers("Retry-After", "3600"))
			ticket.Leave()
		}
		pass(14 * time.Minute)
		if b.Limited() != 1 || b.Rest(hub) == 0 {
			t.Errorf("one that refuses again: %d are held back, it rests %v", b.Limited(), b.Rest(hub))
		}
	})
}

// TestNowAndThenIsNotInARow: a registry that refuses one question of many, for which it
// was asked too fast for a moment, is asked again in a moment each time; one that refuses
// all is left alone for longer and longer.
func TestNowAndThenIsNotInARow(t *testing.T) {
	for _, test := range []struct {
		reason   string
		answered int // between two refusals
		least    time.Duration
		most     time.Duration
	}{
		{"one of thirty", 29, 0, 2 * time.Second},
		{"each", 0, 4 * time.Minute, 7 * time.Minute},
	} {
		t.Run(test.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := ratelimit.New()
				for range 14 {
					for range test.answered {
						if err := ask(t, b, hub, false, 200, nil); err != nil {
							t.Fatal(err)
						}
					}
					if err := ask(t, b, hub, false, 429, nil); err != nil {
						t.Fatal(err)
					}
					rest := b.Rest(hub)
					if rest > test.most {
						t.Fatalf("it rests %v, want at most %v", rest, test.most)
					}
					pass(rest)
				}
				_ = ask(t, b, hub, false, 429, nil)
				if rest := b.Rest(hub); rest < test.least {
					t.Errorf("it rests %v, want at least %v", rest, test.least)
				}
			})
		})
	}
}

// TestALateAnswerOpensNothing: a request that began before a refusal and ends after it takes
// nothing from the count of the active requests.
func TestALateAnswerOpensNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		_ = ask(t, b, hub, false, 429, nil)
		pass(time.Second)
		_ = ask(t, b, hub, false, 200, nil)
		late, err := b.Enter(t.Context(), hub, false) // two may ask at once
		if err != nil {
			t.Fatal(err)
		}
		_ = ask(t, b, hub, false, 429, nil)
		pass(2 * time.Second)
		if _, err := b.Enter(t.Context(), hub, false); err != nil {
			t.Fatal(err)
		}
		late.Heard(200, nil)
		late.Leave()
		brief, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := b.Enter(brief, hub, false); err == nil {
			t.Error("two ask at once after a refusal, and one may")
		}
	})
}

// TestALateRefusal: one that was on its way while a limit came and was forgotten is a limit.
func TestALateRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ratelimit.New()
		late, err := b.Enter(t.Context(), hub, false)
		if err != nil {
			t.Fatal(err)
		}
		_ = ask(t, b, hub, false, 429, nil)
		pass(time.Hour)
		_ = ask(t, b, hub, false, 200, nil)
		if b.Limited() != 0 {
			t.Fatal("it is not forgotten")
		}
		late.Heard(429, nil)
		late.Leave()
		if rest := b.Rest(hub); b.Limited() != 1 || rest == 0 || rest > time.Second {
			t.Errorf("%d are held back, it rests %v", b.Limited(), rest)
		}
	})
}

// TestHostsAreManyAndMemoryIsNot: a name for each image.
func TestHostsAreManyAndMemoryIsNot(t *testing.T) {
	b := ratelimit.New()
	_ = ask(t, b, hub, false, 429, headers("Retry-After", "600"))
	for i := range 5000 {
		account := ratelimit.Account{Host: fmt.Sprint(i)}
		if err := ask(t, b, account, false, 200, headers("Ratelimit-Limit", "100", "Ratelimit-Remaining", "90")); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.Remembered(); n > 4096 {
		t.Errorf("%d are remembered", n)
	}
	if b.Rest(hub) == 0 {
		t.Error("the entry that rests is evicted before others that hold nothing back")
	}
}
