package background

import (
	"fmt"
	"sync"
	"time"
)

// limiter limits the writes of each object.
type limiter struct {
	now func() time.Time

	mu      sync.Mutex
	windows map[key]window
}

type window struct {
	since time.Time
	count int
}

// busyError reports an object that is written too often.
type busyError struct {
	object key
	pause  time.Duration
}

func (e *busyError) Error() string {
	return fmt.Sprintf("%s was written %d times within %s: another controller or another rule reverts the changes; the next try is in %s",
		e.object, maxWrites, writesWindow, e.pause.Round(time.Second))
}

// allow counts a write, or returns the reason to delay it.
func (l *limiter) allow(object key) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	w := l.windows[object]
	if now.Sub(w.since) >= writesWindow {
		w = window{since: now}
	}
	if w.count >= maxWrites {
		return &busyError{object, writesWindow - now.Sub(w.since)}
	}
	w.count++
	if len(l.windows) >= maxCounted {
		for other, w := range l.windows {
			if now.Sub(w.since) >= writesWindow {
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
