package health_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry"
	"github.com/quaymaster/quaymaster/registry/health"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

var _ redirect.Health = (*health.Breaker)(nil)

const mirror = "mirror.example"

func down() error {
	return &image.Error{Kind: image.Unavailable, Op: "ask", On: mirror, Err: errors.New("no answer")}
}

// probes is a registry to be probed: alive or not, and how often it was asked.
type probes struct {
	alive atomic.Bool
	count atomic.Int32
}

func (p *probes) probe(context.Context, string) error {
	p.count.Add(1)
	if !p.alive.Load() {
		return errors.New("still no answer")
	}
	return nil
}

func newBreaker(t testing.TB, probe func(context.Context, string) error, with ...health.Option) *health.Breaker {
	t.Helper()
	b, err := health.New(health.Config{Probe: probe}, with...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// pass advances the time of a bubble, and lets due actions happen.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // of the bubble's clock
	synctest.Wait()
}

func rests(b *health.Breaker, name string) bool {
	_, resting := b.Rest(name)
	return resting
}

func TestNewRefuses(t *testing.T) {
	good := health.Config{Probe: (&probes{}).probe}
	for _, test := range []struct {
		reason string
		config health.Config
		option health.Option
	}{
		{reason: "no probe"},
		{"no rest", good, health.WithRest(0, time.Minute)},
		{"a greatest rest below the first", good, health.WithRest(time.Minute, time.Second)},
		{"no time for a probe", good, health.WithProbeTimeout(0)},
		{"no observer", good, health.WithObserver(nil)},
		{"no clock", good, health.WithClock(nil)},
	} {
		var with []health.Option
		if test.option != nil {
			with = append(with, test.option)
		}
		if _, err := health.New(test.config, with...); err == nil {
			t.Errorf("%s: accepted", test.reason)
		}
	}
	if _, err := health.New(good); err != nil {
		t.Error(err)
	}
	if _, err := health.New(good, health.WithRest(time.Second, time.Second)); err != nil {
		t.Errorf("a rest that is always the same: %v", err)
	}
}

// TestCausesOfOpening: silence, and nothing else.
func TestCausesOfOpening(t *testing.T) {
	const silent, present, nothing, doubtful = "it is silent", "it is there", "nothing", "it may be"
	answered := func(kind image.Kind) error { return &image.Error{Kind: kind, Op: "ask", On: mirror} }
	for _, test := range []struct {
		reason string
		err    error
		says   string // of the registry
	}{
		{"success", nil, present},
		{"no answer", answered(image.Unavailable), silent},
		{"an unknown error", errors.New("odd"), silent},
		{"time ran out", context.DeadlineExceeded, silent},
		{"time ran out, and the caller left then", errors.Join(context.DeadlineExceeded, context.Canceled), silent},
		{"time ran out inside a failure", &image.Error{Kind: image.Unavailable, Err: context.DeadlineExceeded}, silent},
		{"the caller left", context.Canceled, nothing},
		{"the caller left, inside a failure", &image.Error{Kind: image.Unavailable, Err: context.Canceled}, nothing},
		{"it is not there", answered(image.NotFound), present},
		{"the registry reports that it does not exist", &registry.Error{Kind: image.NotFound, Status: 404}, present},
		{"it is refused", answered(image.Refused), present},
		{"it is too much", answered(image.Bound), present},
		{"it contradicts itself", answered(image.Corrupt), present},
		{"an error of the registry's own, which may be of one image", &registry.Error{Kind: image.Unavailable, Status: 503}, doubtful},
		{"an account that has reached its limit", &registry.Error{Kind: image.Unavailable, Status: 429}, nothing},
		{"an account that rests", &registry.Error{Kind: image.Unavailable, Err: fmt.Errorf("not asked: %w", &ratelimit.LimitedError{})}, nothing},
		{"no answer", &registry.Error{Kind: image.Unavailable, Err: errors.New("connection refused")}, silent},
		{"an answer to a credential that is in doubt", &registry.Error{Kind: image.Unavailable, Status: 404}, nothing},
		{"a question that was never sent", &registry.Error{Kind: image.Unavailable, Err: context.DeadlineExceeded}, nothing},
		{"an answer that is late", &registry.Error{Kind: image.Unavailable, Err: fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)}, silent},
		{"wrapped", fmt.Errorf("ask: %w", &registry.Error{Kind: image.Unavailable, Status: 401}), nothing},
	} {
		t.Run(test.reason, func(t *testing.T) {
			b := newBreaker(t, (&probes{}).probe)
			b.Told(mirror, test.err)
			if test.says == doubtful {
				return // TestDoubt
			}
			if why, resting := b.Rest(mirror); resting != (test.says == silent) || resting == (why == "") {
				t.Errorf("resting %t, %q", resting, why)
			}
			if states := b.States(); len(states) > 0 != (test.says != nothing) {
				t.Errorf("%d states", len(states))
			}
			if rests(b, "other.example") {
				t.Error("another registry rests, too")
			}
		})
	}
}

// TestDoubt: an error of the registry's own has it probed at once, and only the result of
// that has it rest; however many errors are reported, one probe is made within a first rest.
func TestDoubt(t *testing.T) {
	broken := &registry.Error{Kind: image.Unavailable, Status: 502}
	synctest.Test(t, func(t *testing.T) {
		var p probes
		p.alive.Store(true)
		b := newBreaker(t, p.probe)
		tell := func(wantProbes int32, wantRest bool) {
			t.Helper()
			b.Told(mirror, broken)
			synctest.Wait()
			if n := p.count.Load(); n != wantProbes || rests(b, mirror) != wantRest {
				t.Fatalf("%d probes, want %d; it rests: %t", n, wantProbes, rests(b, mirror))
			}
		}
		for range 3 {
			tell(1, false)
		}
		pass(5*time.Second - time.Millisecond)
		tell(1, false)
		pass(time.Millisecond)
		tell(2, false)
		p.alive.Store(false)
		pass(5 * time.Second)
		tell(3, true)
		tell(3, true)
		p.alive.Store(true)
		pass(5 * time.Second)
		if n := p.count.Load(); n != 4 || rests(b, mirror) {
			t.Errorf("%d probes, want 4; it rests: %t", n, rests(b, mirror))
		}
		b.Told(mirror, down())
		if !rests(b, mirror) {
			t.Error("no answer, and it does not rest at once")
		}
	})
	synctest.Test(t, func(t *testing.T) { // it rests already
		var p probes
		b := newBreaker(t, p.probe)
		b.Told(mirror, down())
		pass(6 * time.Second)
		b.Told(mirror, broken)
		synctest.Wait()
		if states := b.States(); p.count.Load() != 1 || len(states) != 1 || !errors.Is(states[0].Err, broken) {
			t.Errorf("%d probes, want 1: %+v", p.count.Load(), states)
		}
	})
}

// TestDoubtThatIsSettled: the result of a probe while requests to the registry in doubt go on.
func TestDoubtThatIsSettled(t *testing.T) {
	gone := errors.New("it went away")
	for _, row := range []struct {
		reason string
		failed error
		during func(*health.Breaker)
		rests  bool
	}{
		{"it fails", gone, func(*health.Breaker) {}, true},
		{"another answers in its place", &image.Error{Kind: image.Corrupt, Err: gone}, func(*health.Breaker) {}, true},
		{"it could not be sent", &registry.Error{Kind: image.Unavailable, Err: context.DeadlineExceeded}, func(*health.Breaker) {}, false},
		{"no answer meanwhile", gone, func(b *health.Breaker) { b.Told(mirror, down()) }, true},
		{"no answer, and then one", gone, func(b *health.Breaker) { b.Told(mirror, down()); b.Told(mirror, nil) }, false},
		{"all ends", gone, func(b *health.Breaker) { b.Close() }, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBreaker(t, func(ctx context.Context, _ string) error { <-ctx.Done(); return row.failed })
				b.Told(mirror, &registry.Error{Kind: image.Unavailable, Status: 502})
				synctest.Wait()
				row.during(b)
				pass(5 * time.Second)
				if rests(b, mirror) != row.rests {
					t.Errorf("it rests: %t", !row.rests)
				}
			})
		})
	}
}

// TestRestsAndProbes: one failure, a rest, and one probe after each.
func TestRestsAndProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p probes
		b := newBreaker(t, p.probe)
		b.Told(mirror, down())
		for i, seconds := range []int{5, 10, 20, 40, 80, 120, 120} {
			pass(time.Duration(seconds)*time.Second - time.Millisecond)
			if n := int(p.count.Load()); n != i || !rests(b, mirror) {
				t.Fatalf("before rest %d ends: %d probes, resting %t", i, n, rests(b, mirror))
			}
			pass(time.Millisecond)
			if n := int(p.count.Load()); n != i+1 || !rests(b, mirror) {
				t.Fatalf("after rest %d: %d probes, resting %t", i, n, rests(b, mirror))
			}
		}
		p.alive.Store(true)
		pass(2 * time.Minute)
		if rests(b, mirror) {
			t.Fatal("it rests although a probe was answered")
		}
		pass(time.Hour)
		if n := p.count.Load(); n != 8 {
			t.Errorf("%d probes, want 8: a registry that answers is not probed", n)
		}
		p.alive.Store(false)
		b.Told(mirror, down())
		pass(5 * time.Second)
		if n := p.count.Load(); n != 9 {
			t.Error("the first rest is longer after an earlier one")
		}
	})
}

// TestProbesRunInParallel: no request waits for a probe, it is one at a time, and
// bounded.
func TestProbesRunInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most, count atomic.Int32
		b := newBreaker(t, func(ctx context.Context, _ string) error {
			count.Add(1)
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		})
		b.Told(mirror, down())
		pass(5 * time.Second)
		began := time.Now()
		for range 100 {
			if !rests(b, mirror) {
				t.Fatal("a request was let through beside the probe")
			}
			b.Told(mirror, down())
		}
		if time.Since(began) != 0 {
			t.Error("a request waited for the probe")
		}
		if s := b.States(); s[0].Phase != health.HalfOpen {
			t.Errorf("%+v", s)
		}
		pass(5*time.Second - time.Millisecond)
		if running.Load() != 1 {
			t.Error("the probe ended early")
		}
		pass(time.Millisecond)
		if s := b.States(); running.Load() != 0 || s[0].Phase != health.Open {
			t.Errorf("after its bound the probe runs, or counts as an answer: %+v", s)
		}
		pass(10 * time.Second)
		if count.Load() != 2 || most.Load() != 1 {
			t.Errorf("%d probes, %d at once", count.Load(), most.Load())
		}
	})
}

// TestReportedSuccessCloses, and the probe that runs meanwhile changes nothing.
func TestReportedSuccessCloses(t *testing.T) {
	for _, during := range []health.Phase{health.Open, health.HalfOpen} {
		synctest.Test(t, func(t *testing.T) {
			var count atomic.Int32
			b := newBreaker(t, func(ctx context.Context, _ string) error {
				count.Add(1)
				<-ctx.Done()
				return ctx.Err()
			})
			b.Told(mirror, down())
			pass(time.Second)
			if during == health.HalfOpen {
				pass(5 * time.Second)
			}
			if s := b.States(); s[0].Phase != during {
				t.Fatalf("%+v", s)
			}
			for _, err := range []error{&image.Error{Kind: image.NotFound}, context.Canceled} {
				b.Told(mirror, err)
				if !rests(b, mirror) {
					t.Fatalf("%v is no success", err)
				}
			}
			before := count.Load()
			b.Told(mirror, nil)
			if rests(b, mirror) {
				t.Fatal("it rests")
			}
			pass(time.Hour)
			if rests(b, mirror) || count.Load() != before {
				t.Errorf("a probe of before: resting %t, %d probes", rests(b, mirror), count.Load()-before)
			}
		})
	}
}

// TestAProbeThatWaitsIsCalledOff by a success that is reported meanwhile.
func TestAProbeThatWaitsIsCalledOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var late atomic.Int32
		b := newBreaker(t, func(ctx context.Context, name string) error {
			if name == mirror {
				late.Add(1)
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		for i := range 8 { // as many as are probed at once
			b.Told(fmt.Sprintf("r%d.example", i), down())
		}
		pass(time.Second)
		b.Told(mirror, down())
		pass(5 * time.Second)
		b.Told(mirror, nil)
		pass(time.Hour)
		if n := late.Load(); n != 0 || rests(b, mirror) {
			t.Errorf("%d probes of a registry that answers, resting %t", n, rests(b, mirror))
		}
		b.Told(mirror, down())
		pass(time.Minute)
		if late.Load() != 1 || rests(b, mirror) {
			t.Errorf("%d probes of a registry that does not, want 1; resting %t", late.Load(), rests(b, mirror))
		}
	})
}

// TestIdleRegistriesAreForgotten after more than ten minutes without a request.
func TestIdleRegistriesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p probes
		b := newBreaker(t, p.probe, health.WithRest(5*time.Minute, 5*time.Minute))
		b.Told(mirror, down())
		pass(10 * time.Minute)
		if p.count.Load() != 2 || len(b.States()) != 1 {
			t.Errorf("after ten minutes: %d probes, %v", p.count.Load(), b.States())
		}
		pass(5 * time.Minute)
		if p.count.Load() != 3 || len(b.States()) != 0 {
			t.Errorf("after fifteen minutes: %d probes, %v", p.count.Load(), b.States())
		}
	})
}

// TestAProbeThatIsNotSent has no result: it is due again after the same rest.
func TestAProbeThatIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int32
		b := newBreaker(t, func(context.Context, string) error {
			count.Add(1)
			return &registry.Error{Op: "ping", Kind: image.Unavailable, Err: context.DeadlineExceeded}
		})
		b.Told(mirror, down())
		pass(time.Minute)
		if n := count.Load(); n != 12 || !rests(b, mirror) || !strings.Contains(b.States()[0].Err.Error(), "no answer") {
			t.Errorf("%d probes, %+v", n, b.States())
		}
	})
}

func TestAProbeThatPanicsFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t, func(context.Context, string) error { panic("boom") })
		b.Told(mirror, down())
		pass(5 * time.Second)
		if why, resting := b.Rest(mirror); !resting || !strings.Contains(why, "boom") {
			t.Errorf("%q, %t", why, resting)
		}
	})
}

// TestCloseEndsProbes: those that run, wait or are due; synctest fails for a
// goroutine that is left.
func TestCloseEndsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended, began atomic.Int32
		b := newBreaker(t, func(ctx context.Context, _ string) error {
			began.Add(1)
			<-ctx.Done()
			ended.Add(1)
			return ctx.Err()
		})
		for i := range 20 {
			b.Told(fmt.Sprintf("r%d.example", i), down())
		}
		pass(time.Second)
		b.Told(mirror, down())
		pass(4 * time.Second)
		if began.Load() != 8 {
			t.Errorf("%d probes at once, want 8", began.Load())
		}
		b.Close()
		if began.Load() != 8 || ended.Load() != 8 {
			t.Errorf("%d probes began, %d ended", began.Load(), ended.Load())
		}
		halfOpen := 0
		for _, s := range b.States() {
			if s.Phase == health.HalfOpen {
				halfOpen++
			}
		}
		if halfOpen != 8 {
			t.Errorf("%d registries are being probed, want the 8 that were when it was closed", halfOpen)
		}
		pass(time.Hour)
		b.Told("late.example", down())
		if began.Load() != 8 || rests(b, "late.example") {
			t.Error("a closed breaker goes on")
		}
		b.Close()
	})
}

// TestRegistriesAreBounded: hosts that people invent do not push out those that
// rest, and are forgotten in the end.
func TestRegistriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p probes
		b := newBreaker(t, p.probe)
		b.Told(mirror, down())
		for i := range 1000 {
			b.Told(fmt.Sprintf("good%d.example", i), nil)
		}
		if n := len(b.States()); n != 256 || !rests(b, mirror) {
			t.Errorf("%d states, resting %t", n, rests(b, mirror))
		}
		for i := range 1000 {
			b.Told(fmt.Sprintf("bad%d.example", i), down())
			if !rests(b, mirror) { // which is asked about all the time
				t.Fatalf("forgotten after %d", i)
			}
		}
		if n := len(b.States()); n != 256 {
			t.Errorf("%d states", n)
		}
		b.Told("good.example", nil)
		if len(b.States()) != 256 || !rests(b, "bad999.example") {
			t.Error("a registry that answers pushed out one that rests")
		}
		for range 20 {
			pass(time.Minute)
			b.Rest(mirror)
		}
		if s := b.States(); len(s) != 1 || s[0].Registry != mirror {
			t.Errorf("%d are probed although no request uses them", len(s))
		}
	})
}

// TestStates are sorted, and have the time of the change; an observer is called for each change.
func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		var p probes
		start := time.Now()
		b := newBreaker(t, p.probe, health.WithObserver(func(s health.State) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprint(s.Registry, " ", s.Phase, " ", s.Since.Sub(start)))
		}), health.WithRest(time.Second, 4*time.Second), health.WithProbeTimeout(time.Second))
		b.Told("b.example", down())
		pass(500 * time.Millisecond)
		b.Told("a.example", nil)
		b.Told("a.example", nil)
		pass(500 * time.Millisecond)
		var states []string
		for _, s := range b.States() {
			states = append(states, fmt.Sprint(s.Registry, " ", s.Phase, " ", s.Since.Sub(start), " ", s.Err))
		}
		if got, want := strings.Join(states, "\n"), "a.example closed 500ms <nil>\nb.example open 0s still no answer"; got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		p.alive.Store(true)
		pass(2 * time.Second)
		want := "b.example open 0s\na.example closed 500ms\nb.example half-open 0s\nb.example open 0s\nb.example half-open 0s\nb.example closed 3s"
		mu.Lock()
		defer mu.Unlock()
		if got := strings.Join(seen, "\n"); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// TestReasonIsOneLine: it goes into a verdict.
func TestReasonIsOneLine(t *testing.T) {
	b := newBreaker(t, (&probes{}).probe)
	b.Told(mirror, errors.New("first\nsecond "+strings.Repeat("é", 1000)))
	if why, _ := b.Rest(mirror); strings.Contains(why, "\n") || len(why) > 310 || !strings.HasPrefix(why, "first second é") {
		t.Errorf("%q", why)
	}
	last := strings.Repeat("x", 300)
	b.Told(mirror, errors.New(last))
	if why, _ := b.Rest(mirror); why != last {
		t.Errorf("%q, want the last reason, which is no longer than may be", why)
	}
	b.Told(mirror, errors.New(last+"y"))
	if why, _ := b.Rest(mirror); why != last+"..." {
		t.Errorf("%q, want it to end after 300 bytes", why)
	}
}

func TestConcurrentUse(t *testing.T) {
	b := newBreaker(t, func(_ context.Context, name string) error {
		if strings.HasPrefix(name, "r1") {
			return errors.New("dead")
		}
		return nil
	}, health.WithRest(time.Microsecond, time.Millisecond), health.WithClock(time.Now))
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 500 {
				name := fmt.Sprintf("r%d.example", (worker+i)%300)
				b.Rest(name)
				if i%3 == 0 {
					b.Told(name, down())
				} else {
					b.Told(name, nil)
				}
				if i%50 == 0 {
					b.States()
				}
			}
		})
	}
	group.Wait()
	if n := len(b.States()); n > 256 {
		t.Errorf("%d states", n)
	}
}

// TestRealRegistry: a registry that died, another server in its place, and the
// registry again.
func TestRealRegistry(t *testing.T) {
	server := registrytest.Start(registrytest.Options{})
	defer server.Close()
	client, err := registry.New(registry.Config{}, registry.WithBackoff(time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	changes := make(chan health.State, 100)
	b := newBreaker(t, client.Ping, health.WithRest(time.Millisecond, 2*time.Millisecond), health.WithObserver(func(s health.State) { changes <- s }))
	server.SetFaults(registrytest.Fault{Kind: registrytest.Ping, Do: registrytest.HTML()}, registrytest.Fault{Do: registrytest.Status(502)})
	_, err = client.Resolve(t.Context(), image.MustParse(server.Host()+"/app:v1"))
	b.Told(server.Host(), err)
	for range 5 { // open, half-open, open, half-open, open
		if s := <-changes; s.Phase == health.Closed {
			t.Fatalf("a page was taken for a registry: %+v", s)
		}
	}
	server.SetFaults()
	for s := range changes {
		if s.Phase == health.Closed {
			break
		}
	}
	if server.Count("", registrytest.Ping) < 2 || rests(b, server.Host()) {
		t.Error("it rests")
	}
}

func BenchmarkRest(b *testing.B) {
	breaker := newBreaker(b, (&probes{}).probe)
	breaker.Told(mirror, nil)
	b.ReportAllocs()
	for b.Loop() {
		breaker.Rest(mirror)
	}
}
