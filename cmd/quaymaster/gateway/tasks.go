package gateway

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
)

// task is something that runs beside the doors until it is told to stop.
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

// runAll runs the doors until ctx ends, and the tasks until the doors have
// drained: what is at work still needs them. One that fails ends all.
func runAll(ctx context.Context, doors task, tasks []task) error {
	beside, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	front, leave := context.WithCancel(ctx)
	defer leave()
	var group errgroup.Group
	for _, t := range tasks {
		group.Go(func() error {
			err := t.run(beside)
			if err != nil && beside.Err() == nil {
				leave()
				return fmt.Errorf("%s: %w", t.name, err)
			}
			return nil
		})
	}
	err := doors.run(front)
	stop()
	if failed := group.Wait(); failed != nil {
		return failed
	}
	return err
}
