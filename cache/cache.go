package cache

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/maypok86/otter/v2"
)

// Options say what a Cache may hold and for how long.
type Options[K comparable, V any] struct {
	// MaxCost bounds the sum of the costs of all entries; required, above 0. It
	// may be exceeded for the moment that eviction takes.
	MaxCost uint64
	// Cost returns what an entry costs, in the unit of MaxCost; nil means that
	// each costs 1. It must not call the cache. Costs below 1 count as 1, and
	// those above 4,294,967,295 as that; an entry that costs more than MaxCost
	// is not kept.
	Cost func(K, V) int
	// MaxTTL bounds the life of every entry; required, above 0.
	MaxTTL time.Duration
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Cache is a bounded memory whose entries each live for a time that is given
// with them. It is safe for concurrent use. Make one with New.
type Cache[K comparable, V any] struct {
	entries *otter.Cache[K, entry[V]]
	maxTTL  time.Duration
	now     func() time.Time
}

// entry knows its own end, beside otter's: otter counts in monotonic time,
// which stands still while a machine sleeps, but what an entry rests on (a
// certificate, a revocation answer) ends by the clock on the wall. An entry is
// gone as soon as either says so.
type entry[V any] struct {
	value    V
	ttl      time.Duration
	deadline int64 // nanoseconds since the Unix epoch
}

// New returns an empty Cache, or an error for bounds that mean nothing.
func New[K comparable, V any](o Options[K, V]) (*Cache[K, V], error) {
	if o.MaxCost == 0 {
		return nil, errors.New("new cache: MaxCost must be above 0, since nothing may grow without bound")
	}
	if o.MaxTTL <= 0 {
		return nil, fmt.Errorf("new cache: MaxTTL must be above 0, got %s", o.MaxTTL)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	entries, err := otter.New(&otter.Options[K, entry[V]]{
		MaximumWeight: o.MaxCost,
		Weigher: func(key K, e entry[V]) uint32 {
			if o.Cost == nil {
				return 1
			}
			// otter never evicts what weighs nothing.
			return uint32(min(max(int64(o.Cost(key, e.value)), 1), math.MaxUint32))
		},
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[K, entry[V]]) time.Duration {
			return e.Value.ttl
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("new cache: %w", err)
	}
	return &Cache[K, V]{entries: entries, maxTTL: o.MaxTTL, now: o.Now}, nil
}

// Get returns the value that was put under key, unless its time is over or it
// was evicted. Reading never lengthens a life.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	e, ok := c.entries.GetIfPresent(key)
	if !ok || c.now().UnixNano() >= e.deadline {
		var none V
		return none, false
	}
	return e.value, true
}

// Put keeps value under key for ttl, or for the cache's MaxTTL if that is
// less, in place of whatever was there. With a ttl of 0 or less nothing is kept
// under key any more.
func (c *Cache[K, V]) Put(key K, value V, ttl time.Duration) {
	if ttl <= 0 {
		c.Delete(key)
		return
	}
	ttl = min(ttl, c.maxTTL)
	c.entries.Set(key, entry[V]{value: value, ttl: ttl, deadline: c.now().Add(ttl).UnixNano()})
}

// All yields what is held and has not ended, in no order. What changes meanwhile may
// be among it or not.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		now := c.now().UnixNano()
		for key, e := range c.entries.All() {
			if now < e.deadline && !yield(key, e.value) {
				return
			}
		}
	}
}

// Delete forgets key.
func (c *Cache[K, V]) Delete(key K) { c.entries.Invalidate(key) }

// Clear forgets everything.
func (c *Cache[K, V]) Clear() { c.entries.InvalidateAll() }

// Len returns about how many entries are held; some may have ended already.
func (c *Cache[K, V]) Len() int { return c.entries.EstimatedSize() }

// Cost returns about what the entries cost together.
func (c *Cache[K, V]) Cost() uint64 { return c.entries.WeightedSize() }

// Close stops the goroutine that clears away what has ended. A cache that is
// garbage stops it by itself, so only tests that count goroutines need this.
func (c *Cache[K, V]) Close() { c.entries.StopAllGoroutines() }

// CleanUp clears away now what has ended or exceeds the bound, which otherwise
// happens beside later calls.
func (c *Cache[K, V]) CleanUp() { c.entries.CleanUp() }
