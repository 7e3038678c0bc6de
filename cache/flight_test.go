package cache_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quaymaster/quaymaster/cache"
)

func newFlight(t *testing.T) *cache.Flight[string, int] {
	t.Helper()
	f, err := cache.NewFlight[string, int](time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

type answer struct {
	value int
	err   error
}

func TestNewFlightRefusesNoTimeout(t *testing.T) {
	for _, timeout := range []time.Duration{0, -time.Second} {
		if _, err := cache.NewFlight[string, int](timeout); err == nil {
			t.Errorf("a timeout of %s was accepted", timeout)
		}
	}
}

func TestCallersOfOneKeyShareOneWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlight(t)
		var works atomic.Int32
		release := make(chan struct{})
		answers := make(chan answer, 11)
		ask := func(key string) {
			value, err := f.Do(t.Context(), key, func(context.Context) (int, error) {
				works.Add(1)
				<-release
				return 7, nil
			})
			answers <- answer{value, err}
		}
		for range 10 {
			go ask("same")
		}
		go ask("other")
		synctest.Wait()
		if got := works.Load(); got != 2 {
			t.Errorf("%d works for 11 callers of two keys, want 2", got)
		}
		close(release)
		for range 11 {
			if got := <-answers; got.value != 7 || got.err != nil {
				t.Errorf("a waiter got %+v", got)
			}
		}
	})
}

func TestNothingIsRemembered(t *testing.T) {
	f := newFlight(t)
	failure := errors.New("registry is down")
	if _, err := f.Do(t.Context(), "k", func(context.Context) (int, error) { return 0, failure }); !errors.Is(err, failure) {
		t.Fatalf("got %v, want the work's own error", err)
	}
	got, err := f.Do(t.Context(), "k", func(context.Context) (int, error) { return 1, nil })
	if got != 1 || err != nil {
		t.Errorf("after a failure: %d, %v; want the second work's result", got, err)
	}
}

func TestWorkOutlivesItsFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlight(t)
		release := make(chan struct{})
		work := func(ctx context.Context) (int, error) {
			select {
			case <-release:
				return 7, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		first, leave := context.WithCancel(t.Context())
		one, two := make(chan answer, 1), make(chan answer, 1)
		go func() { value, err := f.Do(first, "k", work); one <- answer{value, err} }()
		synctest.Wait()
		go func() { value, err := f.Do(t.Context(), "k", work); two <- answer{value, err} }()
		synctest.Wait()
		leave()
		if got := <-one; !errors.Is(got.err, context.Canceled) {
			t.Errorf("the caller that left got %+v, want context.Canceled", got)
		}
		synctest.Wait()
		close(release)
		if got := <-two; got.value != 7 || got.err != nil {
			t.Errorf("the caller that stayed got %+v, want the result", got)
		}
	})
}

func TestWorkHasADeadlineOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFlight(t)
		start := time.Now()
		_, err := f.Do(t.Context(), "k", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1m0s") {
			t.Errorf("got %v, want a deadline error that names the timeout", err)
		}
		if got := time.Since(start); got != time.Minute {
			t.Errorf("the work ended after %s, want 1m", got)
		}
	})
}

func TestCanceledCallerStartsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newFlight(t).Do(ctx, "k", func(context.Context) (int, error) {
		t.Error("the work was started")
		return 0, nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestWorkSeesTheValuesOfItsStarter(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, 3)
	got, err := newFlight(t).Do(ctx, "k", func(ctx context.Context) (int, error) {
		return ctx.Value(key{}).(int), nil
	})
	if got != 3 || err != nil {
		t.Errorf("got %d, %v; want the value of the starter's context", got, err)
	}
}

func TestWorkThatBreaksIsAnErrorForAllWaiters(t *testing.T) {
	cause := errors.New("index out of range")
	for _, row := range []struct {
		reason string
		end    func()
		check  func(error) bool
	}{
		{"a panic with a text", func() { panic("boom") }, func(err error) bool {
			var p *cache.PanicError
			return errors.As(err, &p) && p.Value == "boom" && strings.Contains(string(p.Stack), "flight_test.go")
		}},
		{"a panic with an error", func() { panic(cause) }, func(err error) bool { return errors.Is(err, cause) }},
		{"an end of the goroutine", runtime.Goexit, func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "without a result")
		}},
	} {
		t.Run(row.reason, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFlight(t)
				release := make(chan struct{})
				answers := make(chan error, 3)
				for range 3 {
					go func() {
						_, err := f.Do(t.Context(), "k", func(context.Context) (int, error) {
							<-release
							row.end()
							return 0, nil
						})
						answers <- err
					}()
				}
				synctest.Wait()
				close(release)
				for range 3 {
					if err := <-answers; !row.check(err) {
						t.Errorf("a waiter got %v", err)
					}
				}
				got, err := f.Do(t.Context(), "k", func(context.Context) (int, error) { return 1, nil })
				if got != 1 || err != nil {
					t.Errorf("the key is stuck afterwards: %d, %v", got, err)
				}
			})
		})
	}
}

func TestLateCallersSkipWorkThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := cache.NewFlight[string, string](time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := f.Do(ctx, "key", func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("work that hangs gave %v", err)
		}
		second := func(context.Context) (string, error) { return "second", nil }
		soon, leaveSoon := context.WithTimeout(t.Context(), time.Second)
		defer leaveSoon()
		if got, err := f.Do(soon, "key", second); err == nil {
			t.Errorf("work of a second ago was not joined: %q", got)
		}
		time.Sleep(2 * time.Second) //nolint:forbidigo // of the bubble's clock
		if got, err := f.Do(t.Context(), "key", second); got != "second" || err != nil {
			t.Errorf("a later caller got %q, %v, and waited for work that hangs", got, err)
		}
		time.Sleep(time.Minute) //nolint:forbidigo // of the bubble's clock: the first work ends, and evicts no later result
		synctest.Wait()
	})
}

// TestNoWaitForWorkThatHangs: a caller that joined work in time waits no longer than a later
// caller would. The work then starts anew, once for all callers that wait.
func TestNoWaitForWorkThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, err := cache.NewFlight[string, string](time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = f.Do(t.Context(), "key", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
		}()
		synctest.Wait()
		var works atomic.Int64
		begun := time.Now()
		var group sync.WaitGroup
		for range 50 {
			group.Go(func() {
				got, err := f.Do(t.Context(), "key", func(context.Context) (string, error) {
					works.Add(1)
					time.Sleep(time.Second) //nolint:forbidigo // of the bubble's clock
					return "second", nil
				})
				if took := time.Since(begun); got != "second" || err != nil || took != 4*time.Second {
					t.Errorf("%q, %v after %v", got, err, took)
				}
			})
		}
		group.Wait()
		if works.Load() != 1 {
			t.Errorf("%d works, want 1", works.Load())
		}
		time.Sleep(time.Minute) //nolint:forbidigo // of the bubble's clock
		synctest.Wait()
	})
}

// TestUnfinished: a caller that leaves gets the number of steps, whether it began the work or joined it.
func TestUnfinished(t *testing.T) {
	for _, steps := range []int64{0, 3} {
		synctest.Test(t, func(t *testing.T) {
			flight, end := newFlight(t), make(chan struct{})
			ctx, cancel := context.WithCancel(t.Context())
			failures := make(chan error, 2)
			for range 2 {
				go func() {
					_, err := flight.Do(ctx, "key", func(ctx context.Context) (int, error) {
						for range steps {
							cache.Step(ctx)
						}
						<-end
						return 0, nil
					})
					failures <- err
				}()
			}
			synctest.Wait()
			cancel()
			for range 2 {
				err := <-failures
				unfinished, ok := errors.AsType[*cache.UnfinishedError](err)
				if !errors.Is(err, context.Canceled) || ok != (steps > 0) || ok && unfinished.Steps != steps {
					t.Errorf("%d steps: %#v", steps, err)
				}
			}
			close(end)
		})
	}
	cache.Step(t.Context()) // no shared work
}
