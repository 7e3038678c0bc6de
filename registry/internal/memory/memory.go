// Package memory is a cache bounded by age and size.
package memory

import (
	"sync"
	"time"
)

// Map is a map with eviction by age and by number.
type Map[V any] struct {
	most int
	age  time.Duration

	mu      sync.Mutex
	entries map[string]remembered[V]
}

type remembered[V any] struct {
	value V
	until time.Time
}

// New returns a Map of at most most entries, each cached for age.
func New[V any](most int, age time.Duration) *Map[V] {
	return &Map[V]{most: most, age: age, entries: map[string]remembered[V]{}}
}

// Get returns the cached value of key.
func (m *Map[V]) Get(key string) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	entry, ok := m.entries[key]
	if !ok || time.Now().After(entry.until) {
		var none V
		return none, false
	}
	return entry.value, true
}

// Set caches value. A full map evicts expired entries, else any one entry: a lost entry
// costs only a round trip.
func (m *Map[V]) Set(key string, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if _, known := m.entries[key]; !known && len(m.entries) >= m.most {
		m.makeRoom(now)
	}
	m.entries[key] = remembered[V]{value: value, until: now.Add(m.age)}
}

func (m *Map[V]) makeRoom(now time.Time) {
	for key, entry := range m.entries {
		if now.After(entry.until) {
			delete(m.entries, key)
		}
	}
	for key := range m.entries {
		if len(m.entries) < m.most {
			return
		}
		delete(m.entries, key)
	}
}
