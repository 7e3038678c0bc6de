package gateway

import (
	"context"
	"fmt"
	"runtime/debug"
)

// Component is a part of the gateway that works in the background.
type Component interface {
	// Run works until ctx ends. An error ends the gateway.
	Run(ctx context.Context) error
	// Ready returns a channel that is closed once decisions can be made with the component; nil
	// means that no decision waits for it.
	Ready() <-chan struct{}
	// NeedLeaderElection reports whether only the leader runs the component.
	NeedLeaderElection() bool
}

// Func is a component of every replica, for which no decision waits.
type Func func(ctx context.Context) error

// Run implements Component.
func (f Func) Run(ctx context.Context) error { return f(ctx) }

// Ready implements Component.
func (Func) Ready() <-chan struct{} { return nil }

// NeedLeaderElection implements Component.
func (Func) NeedLeaderElection() bool { return false }

// OnReplicas is embedded in components of every replica, for which no decision waits.
type OnReplicas struct{}

// Ready implements Component.
func (OnReplicas) Ready() <-chan struct{} { return nil }

// NeedLeaderElection implements Component.
func (OnReplicas) NeedLeaderElection() bool { return false }

// OnLeader is embedded in components that only the leader runs, for which no decision waits.
type OnLeader struct{}

// Ready implements Component.
func (OnLeader) Ready() <-chan struct{} { return nil }

// NeedLeaderElection implements Component.
func (OnLeader) NeedLeaderElection() bool { return true }

// Loop makes a component of a function that ends with its context and cannot fail.
func Loop(run func(ctx context.Context)) Func {
	return func(ctx context.Context) error {
		run(ctx)
		return nil
	}
}

// LeaderFunc is a component that only the leader runs, until it no longer leads.
type LeaderFunc func(ctx context.Context)

// Run implements Component.
func (f LeaderFunc) Run(ctx context.Context) error {
	f(ctx)
	return nil
}

// Ready implements Component.
func (LeaderFunc) Ready() <-chan struct{} { return nil }

// NeedLeaderElection implements Component.
func (LeaderFunc) NeedLeaderElection() bool { return true }

// named is a component with its name in errors.
type named struct {
	Component
	name string
}

// guarded runs the component; a panic becomes an error, so that pending requests still get a
// response.
func (n named) guarded(ctx context.Context) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s: internal error, which is a defect: %v\n%s", n.name, p, debug.Stack())
		}
	}()
	if err := n.Run(ctx); err != nil {
		return fmt.Errorf("%s: %w", n.name, err)
	}
	return nil
}
