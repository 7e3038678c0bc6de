package review

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/quaymaster/quaymaster/internal/waittime"
)

// Grace is the time after the deadline in which the gate returns its own result, which includes the
// failure setting of each policy.
const Grace = 100 * time.Millisecond

// Result is the result of a call that Run made.
type Result[T any] struct {
	Value T
	// Cause is Decided, TimedOut or Panicked.
	Cause Cause
	// Err is the error that the call returned, or the reason why Cause is not Decided.
	Err error
	// Busy means that the deadline passed during the call's own work, not while it waited for
	// others.
	Busy bool
}

// Run makes a call and waits for its result until ctx ends, and for Grace after that. It does not
// wait for a call that takes longer. done is called when the call has returned, even if that is
// late, so that the call keeps its slot until then.
func Run[T any](ctx context.Context, done func(), call func(context.Context) (T, error)) Result[T] {
	ctx = waittime.With(ctx)
	result := make(chan Result[T], 1)
	go func() {
		r := runSafely(ctx, call)
		done()
		result <- r
	}()
	select {
	case r := <-result:
		return r
	case <-ctx.Done():
	}
	late := time.NewTimer(Grace)
	defer late.Stop()
	select {
	case r := <-result:
		return r
	case <-late.C:
		return Result[T]{Cause: TimedOut, Busy: !waittime.Mostly(ctx), Err: fmt.Errorf("decide: %w", context.Cause(ctx))}
	}
}

// runSafely recovers a panic, which in its goroutine would otherwise end the process and all
// requests in flight.
func runSafely[T any](ctx context.Context, call func(context.Context) (T, error)) (r Result[T]) {
	defer func() {
		if p := recover(); p != nil {
			r = Result[T]{Cause: Panicked, Err: PanicError(p)}
		}
	}()
	r.Cause = Decided
	r.Value, r.Err = call(ctx)
	return r
}

// CheckTimeout returns an error unless a timeout is positive and at most most.
func CheckTimeout(timeout, most time.Duration) error {
	if timeout <= 0 || timeout > most {
		return fmt.Errorf("timeout %s: must be positive and at most %s", timeout, most)
	}
	return nil
}

// PanicError returns an error with a recovered value and its stack, for the log.
func PanicError(recovered any) error {
	return fmt.Errorf("panic: %v\n%s", recovered, debug.Stack())
}

// Recorder receives each result before the response is sent, for logs, metrics and events. It must
// not block.
type Recorder[T any] interface {
	Record(ctx context.Context, result T)
}

// Record calls a recorder and ignores its panics.
func Record[T any](ctx context.Context, to Recorder[T], result T) {
	defer func() { _ = recover() }()
	to.Record(ctx, result)
}
