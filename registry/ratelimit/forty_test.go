package ratelimit_test

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// quota is a registry that answers so many requests a minute to an address, and reports
// the remainder.
type quota struct {
	mu                      sync.Mutex
	most, left              int
	window                  time.Time
	answered, refused, scan int
	seconds                 map[int64]int // refusals, by second
}

func (q *quota) ask(background bool) (int, http.Header) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Sub(q.window) >= time.Minute {
		q.window, q.left = now.Truncate(time.Minute), q.most
	}
	if q.left == 0 {
		q.refused++
		q.seconds[now.Unix()]++
		return 429, headers("Retry-After", strconv.Itoa(int(time.Until(q.window.Add(time.Minute))/time.Second)+1))
	}
	q.left--
	q.answered++
	if background {
		q.scan++
	}
	return 200, headers("Ratelimit-Limit", fmt.Sprintf("%d;w=60", q.most), "Ratelimit-Remaining", fmt.Sprintf("%d;w=60", q.left))
}

// TestFortyGateways: forty processes behind one address need in sum ten minutes' worth
// of a registry's rate limit. All requests for admission are answered, with hardly more
// requests and time than necessary; there is no burst when a minute is over, and
// background work gets the remainder.
func TestFortyGateways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const gateways, each, perMinute = 40, 50, 200
		registry := &quota{most: perMinute, seconds: map[int64]int{}}
		var open atomic.Int64
		open.Store(gateways * each)
		var finished, first atomic.Int64
		begun := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		question := func(b *ratelimit.Limiter, lanes chan struct{}, background bool) bool {
			brief, done := context.WithTimeout(ctx, 10*time.Second)
			defer done()
			ticket, err := b.Enter(brief, hub, background)
			if err != nil {
				return false
			}
			defer ticket.Leave()
			lanes <- struct{}{}
			defer func() { <-lanes }()
			if !ticket.Holds() {
				return false
			}
			time.Sleep(50 * time.Millisecond) //nolint:forbidigo // of the bubble's clock
			status, header := registry.ask(background)
			ticket.Heard(status, header)
			return status == 200
		}
		for g := range gateways {
			b, lanes := ratelimit.New(), make(chan struct{}, 16) // as a client has them for one host
			for range each {
				group.Go(func() { // a controller tries again
					for pause := time.Second; !question(b, lanes, false); pause = min(2*pause, 16*time.Second) {
						time.Sleep(pause) //nolint:forbidigo // of the bubble's clock
					}
					if open.Add(-1) == 0 {
						finished.Store(int64(time.Since(begun)))
					}
				})
			}
			if g%4 == 0 { // a leader of each four scans
				group.Go(func() {
					for ctx.Err() == nil {
						if question(b, make(chan struct{}, 1), true) && open.Load() > 0 {
							first.Add(1)
						}
						time.Sleep(200 * time.Millisecond) //nolint:forbidigo // of the bubble's clock
					}
				})
			}
		}
		pass(time.Hour)
		cancel()
		group.Wait()
		took := time.Duration(finished.Load())
		stormiest := 0 // once they know that there is a limit
		for second, n := range registry.seconds {
			if second > begun.Unix()+1 {
				stormiest = max(stormiest, n)
			}
		}
		t.Logf("admission: %d in %v; %d refused; at most %d in one second; of the scan %d meanwhile, %d in the hour", gateways*each, took, registry.refused, stormiest, first.Load(), registry.scan)
		if open.Load() != 0 || took == 0 || took > 15*time.Minute {
			t.Errorf("%d questions are open; it took %v", open.Load(), took)
		}
		if first.Load() > gateways*each/4 {
			t.Errorf("the scan asked %d times while admission waited", first.Load())
		}
		if registry.scan < 1000 {
			t.Errorf("the scan asked %d times in an hour", registry.scan)
		}
		if registry.refused > gateways*each || stormiest > 16*gateways/2 {
			t.Errorf("%d questions were refused, %d of them in one second", registry.refused, stormiest)
		}
	})
}
