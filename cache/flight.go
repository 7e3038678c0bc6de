package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// Flight lets concurrent callers with the same key share one call. The call is independent of its
// callers: it has a deadline of its own, and continues after the initiating caller has left. Its
// result goes to the waiting callers and is not stored, so that errors are never cached. It is
// safe for concurrent use. Make one with NewFlight.
type Flight[K comparable, V any] struct {
	timeout time.Duration

	mu    sync.Mutex
	calls map[K]*call[V]
}

// joinable is the maximum age of a call that other callers still join. Work that hangs must not
// block later callers: after a server has recovered, new callers get its response, and they do
// not depend on the initiating caller. For each key there are at most timeout / joinable calls.
const joinable = 3 * time.Second

type call[V any] struct {
	began time.Time
	steps atomic.Int64
	done  chan struct{} // closed when value and err are set
	value V
	err   error
}

// NewFlight returns a Flight. timeout bounds each call and must be above 0.
func NewFlight[K comparable, V any](timeout time.Duration) (*Flight[K, V], error) {
	if timeout <= 0 {
		return nil, fmt.Errorf("new flight: the timeout must be above 0, got %s", timeout)
	}
	return &Flight[K, V]{timeout: timeout, calls: make(map[K]*call[V])}, nil
}

// Do returns the result of the pending call for key. It starts work if there is none, or if it
// began more than 3 s ago, also while waiting for an older call. A caller returns with its ctx's
// error when ctx ends, in an *UnfinishedError if work has counted steps; the work continues. The
// context of work has the values of the initiating ctx, but ends only with the Flight's timeout. work must honour it, because its callers wait
// until it returns. If work panics, every waiting caller gets a *PanicError.
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
		case ctx.Err() != nil && c.steps.Load() > 0:
			return none, &UnfinishedError{Steps: c.steps.Load(), Err: context.Cause(ctx)}
		case ctx.Err() != nil:
			return none, context.Cause(ctx)
		}
	}
}

// UnfinishedError is the error of a caller if its ctx ended before the shared work.
type UnfinishedError struct {
	// Steps is how many steps the work has counted until then.
	Steps int64
	// Err is the cause.
	Err error
}

// Error implements error.
func (e *UnfinishedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnfinishedError) Unwrap() error { return e.Err }

// stepsKey is the context key of the steps of shared work.
type stepsKey struct{}

// Step counts a step of the shared work that ctx belongs to, if any; see UnfinishedError.
func Step(ctx context.Context) {
	if steps, ok := ctx.Value(stepsKey{}).(*atomic.Int64); ok {
		steps.Add(1)
	}
}

// join returns the call for key, and the wait after which another caller's is too old; 0 for its
// own.
func (f *Flight[K, V]) join(ctx context.Context, key K, work func(context.Context) (V, error)) (c *call[V], old time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, under := f.calls[key]
	if under && time.Since(c.began) < joinable {
		return c, joinable - time.Since(c.began)
	}
	c = &call[V]{began: time.Now(), done: make(chan struct{})}
	f.calls[key] = c
	detached := context.WithValue(context.WithoutCancel(ctx), stepsKey{}, &c.steps)
	if deadline, bounded := CallerDeadline(ctx); bounded {
		detached = context.WithValue(detached, callerKey{}, deadline)
	}
	go f.run(detached, key, c, work)
	return c, 0
}

// callerKey is the context key of the deadline of the call that began shared work.
type callerKey struct{}

// CallerDeadline returns the deadline of the call of ctx. For shared work, which continues after
// its callers, it is the deadline of the initiating caller. Work that only waits can stop then.
func CallerDeadline(ctx context.Context) (time.Time, bool) {
	deadline, bounded := ctx.Deadline()
	if caller, ok := ctx.Value(callerKey{}).(time.Time); ok && (!bounded || caller.Before(deadline)) {
		return caller, true
	}
	return deadline, bounded
}

// await reports whether work ended before ctx, and before it was too old.
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
		if f.calls[key] == c { // not a later call
			delete(f.calls, key)
		}
		f.mu.Unlock()
		close(c.done)
	}()
	c.value, c.err = work(ctx)
}

// PanicError is the error of the waiting callers after a panic in shared work.
type PanicError struct {
	// Value is the value of the panic.
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
