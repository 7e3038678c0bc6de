package gateway

import (
	"context"
	"fmt"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// task runs in the background until its context ends.
type task struct {
	name string
	run  func(ctx context.Context) error
}

// forever makes a task of a function that cannot fail.
func forever(name string, run func(ctx context.Context)) task {
	return task{name: name, run: func(ctx context.Context) error {
		run(ctx)
		return nil
	}}
}

// guarded runs the task; a panic becomes an error, so that pending requests still get a response.
func (t task) guarded(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: internal error, which is a defect: %v\n%s", t.name, p, debug.Stack())
		}
	}()
	if err := t.run(ctx); err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	return nil
}

// front is the server: it drains when its context ends.
type front struct {
	task
	open <-chan struct{} // closed once there may be requests to wait for
}

// runAll runs the front until ctx ends, and the tasks until it has drained, because pending
// requests need them. A failing task ends all.
func runAll(ctx context.Context, doors front, tasks []task) error {
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	inFront, leave := context.WithCancel(ctx)
	defer leave()
	var group errgroup.Group
	for _, t := range tasks {
		group.Go(func() error {
			err := t.guarded(beside)
			if err != nil && beside.Err() == nil {
				leave()
				return err
			}
			return nil
		})
	}
	served := make(chan error, 1)
	go func() { served <- doors.run(inFront) }()
	var err error
	select {
	case err = <-served:
	case <-inFront.Done():
		select {
		case <-doors.open:
			err = <-served
		default: // no request was accepted, so there is none to wait for
		}
	}
	stop()
	if failed := group.Wait(); failed != nil {
		return failed
	}
	return err
}
