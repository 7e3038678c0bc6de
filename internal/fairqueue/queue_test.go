package fairqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/internal/fairqueue"
)

func seats(t testing.TB, total, perHost int64) *fairqueue.Queue {
	t.Helper()
	p, err := fairqueue.New(fairqueue.Bounds{Total: total, PerHost: perHost})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fill takes as many places as a claim gets.
func fill(p *fairqueue.Queue, claim fairqueue.Claim) (holds []fairqueue.Hold, why fairqueue.Reason) {
	for {
		hold, reason, ok := p.TryEnter(claim)
		if !ok {
			return holds, reason
		}
		holds = append(holds, hold)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, bounds := range []fairqueue.Bounds{{}, {Total: -1}, {Total: 1, PerHost: -1}} {
		if _, err := fairqueue.New(bounds); err == nil {
			t.Errorf("%+v: accepted", bounds)
		}
	}
	p := seats(t, 2, 0)
	if _, err := p.Enter(t.Context(), fairqueue.Claim{Seats: 3}); err == nil {
		t.Error("more places than there are: accepted")
	}
}

// TestShares: how many places each gets that wants all, one after the other.
func TestShares(t *testing.T) {
	for _, test := range []struct {
		reason         string
		total, perHost int64
		claims         []fairqueue.Claim
		want           []int
		why            []fairqueue.Reason
	}{
		{"one tenant alone leaves a quarter", 256, 0, []fairqueue.Claim{{Tenant: "a"}}, []int{192}, []fairqueue.Reason{fairqueue.Share}},
		{"the next gets a share of the rest", 256, 0, []fairqueue.Claim{{Tenant: "a"}, {Tenant: "b"}, {Tenant: "c"}}, []int{192, 48, 12}, []fairqueue.Reason{fairqueue.Share, fairqueue.Share, fairqueue.Share}},
		{"a tenant without a name is one like others", 256, 0, []fairqueue.Claim{{}}, []int{192}, []fairqueue.Reason{fairqueue.Share}},
		{"a claim marked alone gets all", 256, 0, []fairqueue.Claim{{Alone: true}}, []int{256}, []fairqueue.Reason{fairqueue.Full}},
		{"and all of a host", 64, 16, []fairqueue.Claim{{Host: "x", Alone: true}}, []int{16}, []fairqueue.Reason{fairqueue.HostFull}},
		{"a tenant leaves some of a host to others", 64, 16, []fairqueue.Claim{{Tenant: "a", Host: "x"}, {Tenant: "b", Host: "x"}}, []int{14, 1}, []fairqueue.Reason{fairqueue.Share, fairqueue.Share}},
		{"the last seat is for a tenant without one", 1, 0, []fairqueue.Claim{{Tenant: "a"}, {Tenant: "b"}}, []int{1, 0}, []fairqueue.Reason{fairqueue.Full, fairqueue.Full}},
		{
			"hosts of one tenant take no more than its share", 64, 16,
			[]fairqueue.Claim{{Tenant: "a", Host: "1"}, {Tenant: "a", Host: "2"}, {Tenant: "a", Host: "3"}, {Tenant: "a", Host: "4"}, {Tenant: "a", Host: "5"}, {Tenant: "b", Host: "1"}},
			[]int{14, 14, 14, 6, 0, 1}, []fairqueue.Reason{fairqueue.Share, fairqueue.Share, fairqueue.Share, fairqueue.Share, fairqueue.Share, fairqueue.Share},
		},
		{
			"a host takes no more than its share, for any tenant", 16, 16,
			[]fairqueue.Claim{{Tenant: "a", Host: "x"}, {Tenant: "b", Host: "x"}, {Tenant: "b", Host: "y"}},
			[]int{12, 0, 3}, []fairqueue.Reason{fairqueue.Share, fairqueue.HostFull, fairqueue.Share},
		},
		{"a large claim of a tenant without seats fits while it is free", 100, 0, []fairqueue.Claim{{Tenant: "a", Seats: 90}, {Tenant: "b", Seats: 11}, {Tenant: "b", Seats: 10}}, []int{1, 0, 1}, []fairqueue.Reason{fairqueue.Full, fairqueue.Full, fairqueue.Full}},
	} {
		t.Run(test.reason, func(t *testing.T) {
			p := seats(t, test.total, test.perHost)
			for i, claim := range test.claims {
				holds, why := fill(p, claim)
				if len(holds) != test.want[i] || why != test.why[i] {
					t.Errorf("claim %d, %+v: %d since %d, want %d since %d", i, claim, len(holds), why, test.want[i], test.why[i])
				}
			}
		})
	}
}

// TestATenantIsNotMovedByAnother: with every place that one tenant may have taken for
// good, another one's claims all get in at once, one after the other.
func TestATenantIsNotMovedByAnother(t *testing.T) {
	p := seats(t, 64, 16)
	for i := range 1000 { // of as many hosts as it likes
		fill(p, fairqueue.Claim{Tenant: "greedy", Host: fmt.Sprint(i)})
	}
	if p.Held() != 48 {
		t.Errorf("%d held, want 48", p.Held())
	}
	for i := range 10000 {
		hold, why, ok := p.TryEnter(fairqueue.Claim{Tenant: "modest", Host: fmt.Sprint(i)})
		if !ok {
			t.Fatalf("claim %d waits: %d", i, why)
		}
		hold.Leave()
	}
}

// TestLeastHoldingTenantComesFirst: a thousand claims of one tenant wait, and the later
// claim of another tenant is admitted first.
func TestLeastHoldingTenantComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := seats(t, 8, 0)
		first, _ := fill(p, fairqueue.Claim{Tenant: "first"})
		second, _ := fill(p, fairqueue.Claim{Tenant: "second"})
		third, _ := fill(p, fairqueue.Claim{Tenant: "third"})
		if len(first) != 6 || len(second) != 1 || len(third) != 1 || p.Held() != 8 {
			t.Fatalf("%d, %d, %d", len(first), len(second), len(third))
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		order := make(chan string, 1001)
		for range 1000 {
			go func() {
				if _, err := p.Enter(ctx, fairqueue.Claim{Tenant: "first"}); err == nil {
					order <- "first"
				}
			}()
		}
		synctest.Wait()
		go func() {
			if _, err := p.Enter(ctx, fairqueue.Claim{Tenant: "last"}); err == nil {
				order <- "last"
			}
		}()
		synctest.Wait()
		if got := p.Waiters(fairqueue.Full); got != 1001 {
			t.Errorf("%d wait, want 1001", got)
		}
		second[0].Leave()
		synctest.Wait()
		if len(order) != 1 || <-order != "last" {
			t.Error("the tenant that holds none was not let in first")
		}
		cancel()
		synctest.Wait()
		if got := p.Waiters(fairqueue.Full); got != 0 {
			t.Errorf("%d wait that left", got)
		}
	})
}

// TestLeaveAtTheDeadline: a place that comes when the time is over is kept or
// given back, and never lost.
func TestLeaveAtTheDeadline(t *testing.T) {
	p := seats(t, 1, 0)
	var group sync.WaitGroup
	for i := range 400 {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(500))*time.Microsecond)
			defer cancel()
			hold, err := p.Enter(ctx, fairqueue.Claim{Tenant: fmt.Sprint(i % 3)})
			var waited *fairqueue.WaitError
			switch {
			case err == nil:
				hold.Leave()
			case !errors.As(err, &waited) || !errors.Is(err, context.DeadlineExceeded):
				t.Error(err)
			}
		})
	}
	group.Wait()
	if hold, _, ok := p.TryEnter(fairqueue.Claim{}); !ok || p.Held() != 1 {
		t.Error("the place is lost")
	} else {
		hold.Leave()
	}
}

// TestNoClaimWaitsForEver: for any tenants, hosts and numbers of seats, no claim is left
// once work ends, and the number of seats in use never exceeds the bounds.
func TestNoClaimWaitsForEver(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(seed, 7))
			total, perHost := 1+chance.Int64N(20), 1+chance.Int64N(8)
			p := seats(t, total, perHost)
			var held, most atomic.Int64
			hosts := make([]atomic.Int64, 5)
			begun := time.Now()
			var longest atomic.Int64
			var group sync.WaitGroup
			works := 300
			for range works {
				claim := fairqueue.Claim{Tenant: fmt.Sprint(chance.IntN(4)), Seats: 1, Alone: chance.IntN(8) == 0}
				host := chance.IntN(len(hosts) + 1)
				if host < len(hosts) {
					claim.Host = fmt.Sprint(host)
				} else {
					claim.Seats = 1 + chance.Int64N(total)
				}
				takes := time.Duration(1+chance.IntN(10)) * time.Second
				group.Go(func() {
					hold, err := p.Enter(t.Context(), claim)
					if err != nil {
						t.Error(err)
						return
					}
					longest.Store(max(longest.Load(), int64(time.Since(begun))))
					most.Store(max(most.Load(), held.Add(claim.Seats)))
					if host < len(hosts) && hosts[host].Add(1) > perHost {
						t.Errorf("host %d has more than %d", host, perHost)
					}
					time.Sleep(takes) //nolint:forbidigo // of the bubble's clock
					if host < len(hosts) {
						hosts[host].Add(-1)
					}
					held.Add(-claim.Seats)
					hold.Leave()
				})
			}
			group.Wait()
			if most.Load() > total || p.Held() != 0 {
				t.Errorf("seed %d: %d at once of %d, %d held at the end", seed, most.Load(), total, p.Held())
			}
			if end := 10 * time.Second * time.Duration(works); time.Duration(longest.Load()) > end {
				t.Errorf("seed %d: a claim waited %v", seed, time.Duration(longest.Load()))
			}
		})
	}
}

// TestRememberedFlowsAreBounded: hosts are as many as people write.
func TestRememberedFlowsAreBounded(t *testing.T) {
	p := seats(t, 4, 4)
	for i := range 10000 {
		hold, _, ok := p.TryEnter(fairqueue.Claim{Tenant: fmt.Sprint(i % 7), Host: fmt.Sprint(i)})
		if !ok {
			t.Fatal(i)
		}
		hold.Leave()
	}
	if n := p.Remembered(); n > 2048 {
		t.Errorf("%d flows are remembered", n)
	}
}

func BenchmarkEnter(b *testing.B) {
	p := seats(b, 256, 0)
	ctx := b.Context()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			hold, err := p.Enter(ctx, fairqueue.Claim{Tenant: "shop"})
			if err != nil {
				b.Fatal(err)
			}
			hold.Leave()
		}
	})
}
