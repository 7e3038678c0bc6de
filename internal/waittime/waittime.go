// Package waittime measures the time that a request waits for external servers.
//
// The context of a request has a clock. Callers of a registry, the API server or another service
// report the wait; the rest of the time is the request's own work.
package waittime

import (
	"context"
	"sync"
	"time"
)

// clock measures the time with at least one wait in progress.
type clock struct {
	began time.Time

	mu    sync.Mutex
	open  int // number of waits in progress
	since time.Time
	spent time.Duration
}

type key struct{}

// With returns a context that measures wait time from now on. A context with a clock is returned
// unchanged.
func With(ctx context.Context) context.Context {
	if of(ctx) != nil {
		return ctx
	}
	return context.WithValue(ctx, key{}, &clock{began: time.Now()})
}

func of(ctx context.Context) *clock {
	c, _ := ctx.Value(key{}).(*clock)
	return c
}

// Begin starts a wait, which lasts until end is called, once. Concurrent waits count once.
func Begin(ctx context.Context) (end func()) {
	c := of(ctx)
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open++
	if c.open == 1 {
		c.since = time.Now()
	}
	return c.end
}

func (c *clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.open == 0 {
		c.spent += time.Since(c.since)
	}
}

// Mostly reports whether at least half of the time so far was wait time. It is true for a context
// without a clock.
func Mostly(ctx context.Context) bool {
	c := of(ctx)
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	spent := c.spent
	if c.open > 0 {
		spent += time.Since(c.since)
	}
	return 2*spent >= time.Since(c.began)
}
