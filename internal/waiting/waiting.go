// Package waiting answers: was it others who took the time for a request?
//
// A clock goes with the context of a request. Whoever waits for a registry, the API server
// or a service says so; the rest of the time is what the request's own work took.
package waiting

import (
	"context"
	"sync"
	"time"
)

// clock counts the time in which at least one waits.
type clock struct {
	began time.Time

	mu    sync.Mutex
	open  int // how many wait now
	since time.Time
	spent time.Duration
}

type key struct{}

// With returns a context whose waiting is counted from now on. One that is counted already
// stays as it is.
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

// Begin says that somebody waits for others until end is called, once. Several who wait at
// the same time wait as long as one.
func Begin(ctx context.Context) (end func()) {
	c := of(ctx)
	if c == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open++; c.open == 1 {
		c.since = time.Now()
	}
	return c.end
}

func (c *clock) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open--; c.open == 0 {
		c.spent += time.Since(c.since)
	}
}

// Mostly reports whether at least half of the time until now went by in waiting. Where
// nobody counts, it did.
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
