package publish_test

import (
	"context"
	"flag"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/report/publish"
)

// slow is an API server that takes 50 requests a second and keeps nothing, so that
// what grows is the writer's.
type slow struct {
	turn   chan struct{}
	writes atomic.Int64
}

func newSlow() *slow { return &slow{turn: make(chan struct{}, 1)} }

func (s *slow) pause() {
	s.turn <- struct{}{}
	<-time.After(20 * time.Millisecond)
	<-s.turn
}

func (s *slow) Get(context.Context, string, string) ([]byte, error) {
	return nil, publish.ErrNotFound
}

func (s *slow) Put(_ context.Context, text []byte) ([]byte, error) {
	s.pause()
	s.writes.Add(1)
	return text, nil
}

func (s *slow) Delete(context.Context, string, string, string) error {
	s.pause()
	return nil
}

// many makes an outcome of eighteen rules.
func many(name, of string) report.Decided {
	return decided(name, of, true, func(d *report.Decided, _ *policy.Subject) {
		first := d.Outcome.Rules[0]
		for i := range 17 {
			first.Rule = fmt.Sprint("rule-", i)
			d.Outcome.Rules = append(d.Outcome.Rules, first)
		}
	})
}

// pods is how many pods are simulated: -pods 150000 is a large cluster, and takes half
// a minute.
var pods = flag.Int("pods", 20_000, "pods to simulate")

// TestMemoryDoesNotGrowWithPods: a thousand pods a second, and an API server that takes
// fifty reports a second. What waits is bounded, and so is the memory.
func TestMemoryDoesNotGrowWithPods(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		p := run(t, s)
		before, most, waits := heap(), int64(0), int64(0)
		for i := range *pods {
			p.Take(many(fmt.Sprint("pod-", i), fmt.Sprint("web", i/10)))
			if i%100 == 99 {
				wait(100 * time.Millisecond)
				waits = max(waits, p.Pending())
			}
			if i%(*pods/5) == *pods/10 {
				most = max(most, heap()-before)
			}
		}
		wait(15 * time.Minute)
		reports := int64(*pods / 10)
		if p.Pending() != 0 || s.writes.Load() != reports || len(p.told.drops) > 0 {
			t.Errorf("%d results wait, %d writes for %d reports, dropped %v", p.Pending(), s.writes.Load(), reports, p.told.drops)
		}
		if most > 96<<20 {
			t.Errorf("%d bytes at most, want 96 MB", most)
		}
		t.Logf("%d pods: %d MB at most, %d results waited at most, %d writes", *pods, most>>20, waits, s.writes.Load())
		p.stop()
	})
}

// heap is the memory in use, in bytes.
func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc) //nolint:gosec // no heap has so many
}
