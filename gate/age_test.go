package gate_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/quaymaster/quaymaster/cache/snapshot"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/registry/registrytest"
)

// clock is one that tests move.
type clock struct{ ahead, wall atomic.Int64 }

// advance lets time pass, on the wall clock and on the monotonic one.
func (c *clock) advance(age time.Duration) { c.ahead.Add(int64(age)) }

// set sets the clock on the wall alone to be ahead by so much: as by a hand, or while a
// machine sleeps.
func (c *clock) set(ahead time.Duration) { c.wall.Store(int64(ahead / time.Second)) }

func (c *clock) now() time.Time {
	at := time.Now().Add(time.Duration(c.ahead.Load()))
	if seconds := c.wall.Load(); seconds != 0 {
		// time.Time with both clocks: a flag, 33 bits of seconds, 30 of nanoseconds, and then
		// the monotonic clock, which no exported function preserves.
		*(*uint64)(unsafe.Pointer(&at)) += uint64(seconds) << 30 //nolint:gosec // tests only
	}
	return at
}

func TestTheClockOfTests(t *testing.T) {
	c := &clock{}
	before := c.now()
	c.set(-time.Hour)
	after := c.now()
	if wall := after.Round(0).Sub(before.Round(0)); wall > -59*time.Minute || after.Before(before) {
		t.Errorf("set by an hour it moves by %s, and %s", wall, after.Sub(before))
	}
}

// TestAClockThatWasAhead: claims verified with such a clock outlive a restart, and last no longer
// than claims verified now.
func TestAClockThatWasAhead(t *testing.T) {
	for reason, test := range map[string]struct {
		away time.Duration
		set  bool
		runs bool
	}{
		"at once":                     {time.Second, false, true},
		"the day is over":             {25 * time.Hour, false, false},
		"it was set, at once":         {time.Second, true, true},
		"it was set, the day is over": {25 * time.Hour, true, false},
		"it was set, within the day":  {22 * time.Hour, true, true},
		"without being set, likewise": {22 * time.Hour, false, true},
	} {
		t.Run(reason, func(t *testing.T) {
			h, c := newEnv(t, registrytest.Options{}), &clock{}
			app := h.Build("app", "v1", "app")
			must(0, h.SignBundle(app, byKey(h.key), nil))(t)
			before := h.keeping(t, c, nil, signedBy(h.key))
			move := func(by time.Duration) { c.advance(by) }
			if test.set {
				move = func(by time.Duration) { c.set(max(0, by)) }
			}
			move(2 * time.Hour)
			decide(t, before, app.Name)
			move(-2 * time.Hour)
			parts := must(before.Snapshot(room, 1))(t)
			h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
			c.advance(test.away)
			after := h.keeping(t, c, nil, signedBy(h.key))
			if entries := must(after.RestoreTrusted(parts[0]))(t); entries != 2 {
				t.Errorf("%d entries, want a tag and a fact", entries)
			}
			if out := decide(t, after, app.Name); (out.Result == gate.Allow) != test.runs || out.Result == gate.Deny {
				t.Errorf("%s, want it to run: %t: %+v", out.Result, test.runs, out.Verdicts)
			}
		})
	}
}

// locker keeps a snapshot.
type locker struct{ parts [][]byte }

func (s *locker) Load(context.Context) ([][]byte, error) { return s.parts, nil }

func (s *locker) Save(_ context.Context, parts [][]byte) error {
	s.parts = parts
	return nil
}

// keeper keeps a gate's memory in the locker.
func (s *locker) keeper(t *testing.T, g *gate.Gate) *snapshot.Keeper {
	t.Helper()
	return must(snapshot.New(snapshot.Options{
		Memory: g, Store: s, Sealer: must(snapshot.NewSealer(make([]byte, 32)))(t), Room: room, Parts: 2, Interval: time.Minute,
		Failed: func(err error) { t.Error(err) },
	}))(t)
}

// save saves once.
func (s *locker) save(t *testing.T, g *gate.Gate) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.keeper(t, g).Run(ctx)
}

// TestAStartWithTheClockBehind: replicas start before their clocks are set. Claims from the future
// are kept, and last no longer for that.
func TestAStartWithTheClockBehind(t *testing.T) {
	for reason, test := range map[string]struct {
		away time.Duration
		runs bool
	}{
		"within the day":  {20 * time.Hour, true},
		"the day is over": {25 * time.Hour, false},
	} {
		t.Run(reason, func(t *testing.T) {
			h, c, kept := newEnv(t, registrytest.Options{}), &clock{}, &locker{}
			app := h.Build("app", "v1", "app")
			must(0, h.SignBundle(app, byKey(h.key), nil))(t)
			first := h.keeping(t, c, nil, signedBy(h.key))
			decide(t, first, app.Name)
			kept.save(t, first)
			h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})

			c.set(-3 * time.Hour)
			behind := h.keeping(t, c, nil, signedBy(h.key))
			if n := must(kept.keeper(t, behind).Restore(t.Context()))(t); n != 2 {
				t.Errorf("behind: %d entries, want a tag and a fact", n)
			}
			if out := decide(t, behind, app.Name); out.Result != gate.Allow {
				t.Errorf("behind: %s: %+v", out.Result, out.Verdicts)
			}
			kept.save(t, behind)

			c.set(0)
			c.advance(test.away)
			for what, g := range map[string]*gate.Gate{"the same": behind, "started again": h.keeping(t, c, nil, signedBy(h.key))} {
				must(kept.keeper(t, g).Restore(t.Context()))(t)
				if out := decide(t, g, app.Name); (out.Result == gate.Allow) != test.runs || out.Result == gate.Deny {
					t.Errorf("%s, with the clock right: %s, want it to run: %t: %+v", what, out.Result, test.runs, out.Verdicts)
				}
			}
		})
	}
}

// TestSleepCounts: a machine's time on the wall goes on while it sleeps.
func TestSleepCounts(t *testing.T) {
	for reason, test := range map[string]struct {
		sleeps time.Duration
		asks   bool // the registry, for the fact's age is over
		runs   bool // with the registry away
	}{
		"for minutes":           {10 * time.Minute, false, true},
		"longer than facts age": {20 * time.Hour, true, true},
		"longer than a day":     {25 * time.Hour, true, false},
	} {
		t.Run(reason, func(t *testing.T) {
			for _, away := range []bool{false, true} {
				h, c := newEnv(t, registrytest.Options{}), &clock{}
				app := h.Build("app", "v1", "app")
				must(0, h.SignBundle(app, byKey(h.key), nil))(t)
				g := h.keeping(t, c, nil, signedBy(h.key))
				decide(t, g, app.ByDigest())
				c.set(test.sleeps)
				h.Registry.Reset()
				if away {
					h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
				}
				out := decide(t, g, app.ByDigest())
				if asked := len(h.Registry.Requests()) > 0; asked != test.asks {
					t.Errorf("away %t: the registry is asked: %t", away, asked)
				}
				if runs := out.Result == gate.Allow; runs != (!away || test.runs) || out.Result == gate.Deny {
					t.Errorf("away %t: %s: %+v", away, out.Result, out.Verdicts)
				}
			}
		})
	}
}

// TestGoneSignatureStaysGone over a restart: a signature that the registry was seen to have no more
// is not used when it does not answer, unless it was proved again.
func TestGoneSignatureStaysGone(t *testing.T) {
	gone := registrytest.Fault{Kind: registrytest.Referrers, Do: registrytest.Body([]byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[]}`))}
	for reason, test := range map[string]struct{ gone, again, runs bool }{
		"control":                   {false, false, true},
		"it is gone":                {true, false, false},
		"it was gone, and is there": {true, true, true},
	} {
		t.Run(reason, func(t *testing.T) {
			h, c, kept := newEnv(t, registrytest.Options{}), &clock{}, &locker{}
			app := h.Build("app", "v1", "app")
			must(0, h.SignBundle(app, byKey(h.key), nil))(t)
			before := h.keeping(t, c, nil, signedBy(h.key))
			decide(t, before, app.ByDigest())
			c.advance(2 * time.Hour)
			if test.gone {
				h.Registry.SetFaults(gone)
				if out := decide(t, before, app.ByDigest()); out.Result != gate.Deny {
					t.Errorf("gone: %s", out.Result)
				}
			}
			if test.again {
				h.Registry.SetFaults()
				c.advance(time.Hour)
				if out := decide(t, before, app.ByDigest()); out.Result != gate.Allow {
					t.Errorf("there again: %s", out.Result)
				}
			}
			kept.save(t, before)
			if apart := len(kept.parts) == 2; apart != (test.gone && !test.again) {
				t.Errorf("%d parts: gone signatures have one of their own", len(kept.parts))
			}
			h.Registry.SetFaults(registrytest.Fault{Do: registrytest.Status(503)})
			for range 2 { // and over the next restart
				after := h.keeping(t, c, nil, signedBy(h.key))
				must(kept.keeper(t, after).Restore(t.Context()))(t)
				if out := decide(t, after, app.ByDigest()); (out.Result == gate.Allow) != test.runs || out.Result == gate.Deny {
					t.Errorf("%s, want it to run: %t: %+v", out.Result, test.runs, out.Verdicts)
				}
				kept.save(t, after)
			}
		})
	}
}
