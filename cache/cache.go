package cache

import (
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"time"

	"github.com/maypok86/otter/v2"
)

// Options set the bounds of a Cache.
type Options[K comparable, V any] struct {
	// MaxCost bounds the sum of the costs of all entries; required, above 0. It may be exceeded
	// briefly during eviction.
	MaxCost uint64
	// Cost returns the cost of an entry, in the unit of MaxCost; nil means that each costs 1. It
	// must not call the cache. Costs are limited to 1 to 4,294,967,295; an entry with a higher
	// cost than MaxCost is not kept.
	Cost func(K, V) int
	// MaxTTL bounds the life of every entry; required, above 0.
	MaxTTL time.Duration
	// Now is the wall clock; nil means time.Now.
	Now func() time.Time
}

// Cache is a bounded cache with a separate lifetime for each entry. It is safe for concurrent
// use. Make one with New.
type Cache[K comparable, V any] struct {
	entries entries
	seed    maphash.Seed
	cost    func(K, V) int // nil: 1
	maxTTL  time.Duration
	now     func() time.Time
}

// entries is a cache of otter, as an interface and without the types of keys and values: each further type
// of key would add some 550 kB to the program, and two hundred functions to compile in each package that
// imports a Cache, also indirectly. The keys are 64-bit hashes with a random seed. An entry has its own key
// with it: a Get of another key with the same hash finds nothing, and of the two only the later is kept.
type entries interface {
	GetIfPresent(hash uint64) (entry, bool)
	Set(hash uint64, value entry) (entry, bool)
	All() iter.Seq2[uint64, entry]
	Invalidate(hash uint64) (entry, bool)
	InvalidateAll()
	EstimatedSize() int
	WeightedSize() uint64
	CleanUp()
	StopAllGoroutines() bool
}

// pair is what an entry holds, behind a pointer.
type pair[K comparable, V any] struct {
	key   K
	value V
}

// entry has its own end, in addition to otter's. otter uses monotonic time, which stops while a
// machine sleeps, but the inputs of an entry (a certificate, a revocation response) expire by
// wall-clock time. An entry expires at the earlier of the two.
type entry struct {
	pair     any // *pair[K, V]
	ttl      time.Duration
	deadline int64 // nanoseconds since the Unix epoch
	cost     uint32
}

// New returns an empty Cache, or an error for invalid bounds.
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
	held, err := open(o.MaxCost)
	if err != nil {
		return nil, fmt.Errorf("new cache: %w", err)
	}
	return &Cache[K, V]{entries: held, seed: maphash.MakeSeed(), cost: o.Cost, maxTTL: o.MaxTTL, now: o.Now}, nil
}

// open makes a cache of otter.
func open(maxCost uint64) (entries, error) {
	return otter.New(&otter.Options[uint64, entry]{
		MaximumWeight:    maxCost,
		Weigher:          func(_ uint64, e entry) uint32 { return e.cost },
		ExpiryCalculator: otter.ExpiryWritingFunc(func(e otter.Entry[uint64, entry]) time.Duration { return e.Value.ttl }),
	})
}

// Get returns the value under key, unless it has expired or was evicted. Reading never extends
// its lifetime.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	var none V
	e, ok := c.entries.GetIfPresent(c.hash(key))
	if !ok || c.now().UnixNano() >= e.deadline {
		return none, false
	}
	held, _ := e.pair.(*pair[K, V])
	if held.key != key {
		return none, false
	}
	return held.value, true
}

func (c *Cache[K, V]) hash(key K) uint64 { return maphash.Comparable(c.seed, key) }

// Put stores value under key for ttl, or for the cache's MaxTTL if that is less, and replaces the
// previous value. With a ttl of 0 or less, it deletes key.
func (c *Cache[K, V]) Put(key K, value V, ttl time.Duration) {
	if ttl <= 0 {
		c.Delete(key)
		return
	}
	ttl = min(ttl, c.maxTTL)
	cost := uint32(1)
	if c.cost != nil { // otter never evicts entries of weight 0
		cost = uint32(min(max(int64(c.cost(key, value)), 1), math.MaxUint32))
	}
	held := &pair[K, V]{key: key, value: value}
	c.entries.Set(c.hash(key), entry{pair: held, ttl: ttl, deadline: c.now().Add(ttl).UnixNano(), cost: cost})
}

// All yields the current entries that have not expired, in no order. Concurrent changes may be
// included or not.
func (c *Cache[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		now := c.now().UnixNano()
		for _, e := range c.entries.All() {
			held, _ := e.pair.(*pair[K, V])
			if now < e.deadline && !yield(held.key, held.value) {
				return
			}
		}
	}
}

// Delete removes key.
func (c *Cache[K, V]) Delete(key K) { c.entries.Invalidate(c.hash(key)) }

// Clear removes all entries.
func (c *Cache[K, V]) Clear() { c.entries.InvalidateAll() }

// Len returns the approximate number of entries; some may have expired already.
func (c *Cache[K, V]) Len() int { return c.entries.EstimatedSize() }

// Cost returns the approximate total cost of the entries.
func (c *Cache[K, V]) Cost() uint64 { return c.entries.WeightedSize() }

// Close stops the goroutine that removes expired entries. Garbage collection of the cache stops
// it too, so only tests that count goroutines need this.
func (c *Cache[K, V]) Close() { c.entries.StopAllGoroutines() }

// CleanUp removes expired and excess entries now; otherwise this happens during later calls.
func (c *Cache[K, V]) CleanUp() { c.entries.CleanUp() }
