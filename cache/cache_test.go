package cache_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/cache"
)

// clock is a wall clock that tests move by hand.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.nanos.Store(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano())
	return c
}

func (c *clock) Now() time.Time          { return time.Unix(0, c.nanos.Load()) }
func (c *clock) Advance(d time.Duration) { c.nanos.Add(int64(d)) }

func newCache(t testing.TB, o cache.Options[string, string]) *cache.Cache[string, string] {
	t.Helper()
	c, err := cache.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNewRefusesBoundsThatMeanNothing(t *testing.T) {
	for _, row := range []struct {
		reason  string
		options cache.Options[string, string]
		want    string // empty: accepted
	}{
		{"both bounds are set", cache.Options[string, string]{MaxCost: 1, MaxTTL: time.Second}, ""},
		{"no cost bound would grow forever", cache.Options[string, string]{MaxTTL: time.Second}, "MaxCost"},
		{"no time bound would keep forever", cache.Options[string, string]{MaxCost: 1}, "MaxTTL"},
		{"a negative time is a mistake", cache.Options[string, string]{MaxCost: 1, MaxTTL: -1}, "MaxTTL"},
	} {
		c, err := cache.New(row.options)
		switch {
		case row.want == "" && err != nil:
			t.Errorf("%s: %v", row.reason, err)
		case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: got error %v, want one that names %s", row.reason, err, row.want)
		case err == nil:
			c.Close()
		}
	}
}

func TestEntryLivesAsLongAsItsTTL(t *testing.T) {
	for _, row := range []struct {
		reason string
		ttl    time.Duration
		after  time.Duration
		want   bool
	}{
		{"fresh", time.Minute, 0, true},
		{"one tick before its end", time.Minute, time.Minute - 1, true},
		{"at its end", time.Minute, time.Minute, false},
		{"long after its end", time.Minute, time.Hour, false},
		{"one tick before the cache's greatest age, which is less than its ttl", 24 * time.Hour, time.Hour - 1, true},
		{"at the cache's greatest age", 24 * time.Hour, time.Hour, false},
		{"a ttl of zero keeps nothing", 0, 0, false},
		{"a ttl in the past keeps nothing", -time.Second, 0, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			clock := newClock()
			c := newCache(t, cache.Options[string, string]{MaxCost: 10, MaxTTL: time.Hour, Now: clock.Now})
			c.Put("k", "v", row.ttl)
			clock.Advance(row.after)
			got, ok := c.Get("k")
			if ok != row.want || (ok && got != "v") {
				t.Errorf("Get = %q, %t; want present %t", got, ok, row.want)
			}
		})
	}
}

func TestReadingDoesNotLengthenLife(t *testing.T) {
	clock := newClock()
	c := newCache(t, cache.Options[string, string]{MaxCost: 10, MaxTTL: time.Hour, Now: clock.Now})
	c.Put("k", "v", time.Minute)
	for range 59 {
		clock.Advance(time.Second)
		if _, ok := c.Get("k"); !ok {
			t.Fatal("gone before its end")
		}
	}
	clock.Advance(time.Second)
	if _, ok := c.Get("k"); ok {
		t.Error("an entry that is read every second outlived its ttl")
	}
}

func TestPutReplacesValueAndLife(t *testing.T) {
	clock := newClock()
	c := newCache(t, cache.Options[string, string]{MaxCost: 10, MaxTTL: time.Hour, Now: clock.Now})
	c.Put("k", "long", time.Hour)
	c.Put("k", "short", time.Second)
	if got, _ := c.Get("k"); got != "short" {
		t.Errorf("Get = %q, want the value that was put last", got)
	}
	clock.Advance(time.Second)
	if _, ok := c.Get("k"); ok {
		t.Error("the life of the replaced value was kept")
	}
	c.Put("k", "v", time.Minute)
	c.Put("k", "v", 0)
	if _, ok := c.Get("k"); ok {
		t.Error("a ttl of zero left the earlier value in place")
	}
}

func TestDeleteAndClear(t *testing.T) {
	c := newCache(t, cache.Options[string, string]{MaxCost: 10, MaxTTL: time.Hour})
	c.Put("a", "1", time.Hour)
	c.Put("b", "2", time.Hour)
	c.Delete("a")
	if _, ok := c.Get("a"); ok {
		t.Error("a is still there after Delete")
	}
	if _, ok := c.Get("b"); !ok {
		t.Error("Delete of a took b along")
	}
	c.Clear()
	if _, ok := c.Get("b"); ok {
		t.Error("b is still there after Clear")
	}
}

func TestCostIsBounded(t *testing.T) {
	const bound = 1000
	c := newCache(t, cache.Options[string, string]{
		MaxCost: bound, MaxTTL: time.Hour,
		Cost: func(_, v string) int { return len(v) },
	})
	for i := range 5000 {
		c.Put(fmt.Sprint(i), "0123456789", time.Hour)
	}
	c.CleanUp()
	if got := c.Cost(); got > bound {
		t.Errorf("entries cost %d together, the bound is %d", got, bound)
	}
	if got := c.Len(); got > bound/10 || got == 0 {
		t.Errorf("%d entries of cost 10 are held under a bound of %d", got, bound)
	}
	c.Put("large", strings.Repeat("x", bound+1), time.Hour)
	c.CleanUp()
	if _, ok := c.Get("large"); ok {
		t.Error("an entry that costs more than the bound was kept")
	}
}

func TestWorthlessCostCountsAsOne(t *testing.T) {
	c := newCache(t, cache.Options[string, string]{
		MaxCost: 10, MaxTTL: time.Hour,
		Cost: func(string, string) int { return -1 },
	})
	for i := range 1000 {
		c.Put(fmt.Sprint(i), "v", time.Hour)
	}
	c.CleanUp()
	if got := c.Len(); got > 10 {
		t.Errorf("%d entries that claim to cost nothing are held under a bound of 10", got)
	}
}

func TestConcurrentUse(t *testing.T) {
	clock := newClock()
	c := newCache(t, cache.Options[string, string]{MaxCost: 50, MaxTTL: time.Hour, Now: clock.Now})
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 500 {
				key := fmt.Sprint((worker + i) % 100)
				c.Put(key, key, time.Duration(i%3)*time.Second)
				if got, ok := c.Get(key); ok && got != key {
					t.Errorf("Get(%s) = %s", key, got)
				}
				clock.Advance(time.Millisecond)
			}
		})
	}
	group.Wait()
}

func TestGetDoesNotAllocate(t *testing.T) {
	c := newCache(t, cache.Options[string, string]{MaxCost: 10, MaxTTL: time.Hour})
	c.Put("k", "v", time.Hour)
	if got := testing.AllocsPerRun(1000, func() { c.Get("k") }); got >= 1 {
		t.Errorf("Get allocates %v times", got)
	}
}

func BenchmarkGet(b *testing.B) {
	c := newCache(b, cache.Options[string, string]{MaxCost: 10, MaxTTL: time.Hour})
	c.Put("k", "v", time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		c.Get("k")
	}
}

func ExampleCache() {
	facts, err := cache.New(cache.Options[string, int]{MaxCost: 1000, MaxTTL: time.Hour})
	if err != nil {
		fmt.Println(err)
		return
	}
	facts.Put("answer", 42, time.Minute)
	fmt.Println(facts.Get("answer"))
	fmt.Println(facts.Get("question"))
	// Output:
	// 42 true
	// 0 false
}
