package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Flight lets callers who want the same thing at the same time share one piece
// of work. The work belongs to none of them: it has a deadline of its own, and
// goes on when the caller who started it has left. Its result goes to whoever
// waits and is kept by nobody, so that an error is never remembered. It is safe
// for concurrent use. Make one with NewFlight.
type Flight[K comparable, V any] struct {
	timeout time.Duration

	mu    sync.Mutex
	calls map[K]*call[V]
}

// joinable is how old work may be for somebody who did not start it to wait for it.
// Work that hangs must not make others hang with it: who asks a server that answers
// again gets its answer, and nobody waits longer since who started it may not go on
// just now. For each key there are at most timeout / joinable works.
const joinable = 3 * time.Second

type call[V any] struct {
	began time.Time
	done  chan struct{} // closed when value and err are set
	value V
	err   error
}

// NewFlight returns a Flight whose work may take as long as timeout, which
// must be above 0.
func NewFlight[K comparable, V any](timeout time.Duration) (*Flight[K, V], error) {
	if timeout <= 0 {
		return nil, fmt.Errorf("new flight: the timeout must be above 0, got %s", timeout)
	}
	return &Flight[K, V]{timeout: timeout, calls: make(map[K]*call[V])}, nil
}

// Do returns the result of the work that is under way for key, and starts work
// if there is none, or if it began more than 3 s ago, also while it waits for another's.
// A caller whose ctx ends leaves with that ctx's error; the
// work goes on. The context that work gets carries the values of the ctx that
// started it, but ends only with the Flight's timeout, and work must heed it:
// until then its callers wait for it. Work that panics
// gives every waiter a *PanicError.
func (f *Flight[K, V]) Do(ctx context.Context, key K, work func(context.Context) (V, error)) (V, error) {
	var none V
	if err := ctx.Err(); err != nil {
		return none, context.Cause(ctx)
	}
	for {
		c, old := f.join(ctx, key, work)
		done := f.await(ctx, c, old)
		switch {
		case done:
			return c.value, c.err
		case ctx.Err() != nil:
			return none, context.Cause(ctx)
		}
	}
}

// join returns the work for key, and when somebody else's is too old; 0 for one's own.
func (f *Flight[K, V]) join(ctx context.Context, key K, work func(context.Context) (V, error)) (c *call[V], old time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, under := f.calls[key]
	if under && time.Since(c.began) < joinable {
		return c, joinable - time.Since(c.began)
	}
	c = &call[V]{began: time.Now(), done: make(chan struct{})}
	f.calls[key] = c
	detached := context.WithoutCancel(ctx)
	if deadline, bounded := CallerDeadline(ctx); bounded {
		detached = context.WithValue(detached, callerKey{}, deadline)
	}
	go f.run(detached, key, c, work)
	return c, 0
}

// callerKey is the context key of the deadline of the call that began shared work.
type callerKey struct{}

// CallerDeadline returns when the call ends that ctx is of: for shared work, which goes on
// after it, that of the call that began it. Work that only waits need not go on so long.
func CallerDeadline(ctx context.Context) (time.Time, bool) {
	deadline, bounded := ctx.Deadline()
	if caller, ok := ctx.Value(callerKey{}).(time.Time); ok && (!bounded || caller.Before(deadline)) {
		return caller, true
	}
	return deadline, bounded
}

// await reports whether work ended before ctx, and before it was old.
func (f *Flight[K, V]) await(ctx context.Context, c *call[V], old time.Duration) bool {
	var over <-chan time.Time
	if old > 0 {
		timer := time.NewTimer(old)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-c.done:
		return true
	case <-ctx.Done():
	case <-over:
	}
	return false
}

func (f *Flight[K, V]) run(ctx context.Context, key K, c *call[V], work func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.timeout,
		fmt.Errorf("shared work took longer than %s: %w", f.timeout, context.DeadlineExceeded))
	defer cancel()
	// Set first, for work that ends its goroutine without returning.
	c.err = errors.New("shared work ended without a result")
	defer func() {
		if r := recover(); r != nil {
			c.err = &PanicError{Value: r, Stack: debug.Stack()}
		}
		f.mu.Lock()
		if f.calls[key] == c { // and not of who came later
			delete(f.calls, key)
		}
		f.mu.Unlock()
		close(c.done)
	}()
	c.value, c.err = work(ctx)
}

// PanicError is what the waiters get when shared work panicked.
type PanicError struct {
	// Value is what the work panicked with.
	Value any
	// Stack is the stack of the work's goroutine, for a log; not for users.
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string { return fmt.Sprintf("shared work panicked: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
