// Package writelimit limits how often each object is written: two rules, or a rule and another
// controller, could overwrite each other forever.
package writelimit

import (
	"fmt"
	"sync"
	"time"
)

const (
	// MaxWrites bounds the writes of one object in Window.
	MaxWrites = 10
	// Window is the time in which writes are counted.
	Window = time.Minute
	// maxCounted bounds the objects with counted writes.
	maxCounted = 10_000
)

// Limiter limits the writes of each object. It is safe for concurrent use. Create one with New.
type Limiter[K Key] struct {
	now func() time.Time

	mu      sync.Mutex
	windows map[K]window
}

// Key identifies an object.
type Key interface {
	comparable
	fmt.Stringer
}

type window struct {
	since time.Time
	count int
}

// New returns a Limiter with a clock.
func New[K Key](now func() time.Time) *Limiter[K] {
	return &Limiter[K]{now: now, windows: map[K]window{}}
}

// BusyError reports an object that is written too often.
type BusyError struct {
	Object string
	// Pause is the time until the next write.
	Pause time.Duration
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%s was written %d times within %s: another controller or another rule reverts the changes; the next try is in %s",
		e.Object, MaxWrites, Window, e.Pause.Round(time.Second))
}

// Allow counts a write, or returns the reason to delay it.
func (l *Limiter[K]) Allow(object K) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	w := l.windows[object]
	if now.Sub(w.since) >= Window {
		w = window{since: now}
	}
	if w.count >= MaxWrites {
		return &BusyError{object.String(), Window - now.Sub(w.since)}
	}
	w.count++
	if len(l.windows) >= maxCounted {
		for other, w := range l.windows {
			if now.Sub(w.since) >= Window {
				delete(l.windows, other)
			}
		}
		if len(l.windows) >= maxCounted {
			clear(l.windows) // all of them busy within a minute: clearing permits some more writes
		}
	}
	l.windows[object] = w
	return nil
}
