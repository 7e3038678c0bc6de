package gateway

import (
	"context"
	"iter"
	"sync"

	"golang.org/x/sync/errgroup"
)

// Group holds the components of a process. Its zero value is empty. Add everything before Run.
type Group struct {
	components   []named
	requirements []Requirement
	closers      []func()
}

// Requirement is a condition of decisions.
type Requirement struct {
	// Name is its name in /readyz, and Why describes why it is not met.
	Name, Why string
	// Met is closed once it is met.
	Met <-chan struct{}
}

// Add adds a component by its name in errors.
func (g *Group) Add(name string, c Component) {
	g.components = append(g.components, named{Component: c, name: name})
}

// Components are the components by their names, in the order in which they start.
func (g *Group) Components() iter.Seq2[string, Component] {
	return func(yield func(string, Component) bool) {
		for _, c := range g.components {
			if !yield(c.name, c.Component) {
				return
			}
		}
	}
}

// Require makes decisions wait for a component, which may belong to no group; why is the reason
// while they do.
func (g *Group) Require(name, why string, c interface{ Ready() <-chan struct{} }) {
	g.requirements = append(g.requirements, Requirement{Name: name, Why: why, Met: c.Ready()})
}

// Requirements are those that were added.
func (g *Group) Requirements() []Requirement { return g.requirements }

// OnClose adds a function for Close.
func (g *Group) OnClose(do func()) { g.closers = append(g.closers, do) }

// Close ends components that do not end with a context, the last added one first.
func (g *Group) Close() {
	for i := len(g.closers) - 1; i >= 0; i-- {
		g.closers[i]()
	}
}

// Front is the server of the endpoints: it drains when its context ends.
type Front struct {
	Run func(ctx context.Context) error
	// Open is closed once there may be requests to wait for.
	Open <-chan struct{}
}

// Run runs the front until ctx ends, and the components of every replica until it has drained,
// because pending requests need them. A component that fails ends all.
func (g *Group) Run(ctx context.Context, front Front) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	serving, leave := context.WithCancel(ctx)
	defer leave()
	var running errgroup.Group
	g.start(background, &running, leave)
	served := make(chan error, 1)
	go func() { served <- front.Run(serving) }()
	var err error
	select {
	case err = <-served:
	case <-serving.Done():
		select {
		case <-front.Open:
			err = <-served
		default: // no request was accepted, so there is none to wait for
		}
	}
	stop()
	if failed := running.Wait(); failed != nil {
		return failed
	}
	return err
}

// start starts the components of every replica; failed is called if one fails before ctx ends.
func (g *Group) start(ctx context.Context, in *errgroup.Group, failed func()) {
	for _, c := range g.components {
		if c.NeedLeaderElection() {
			continue
		}
		in.Go(func() error {
			err := c.guarded(ctx)
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the components are being ended, and it ended in its own way
			}
			if err != nil {
				failed()
			}
			return err
		})
	}
}

// Start starts the components of every replica in the background until ctx ends; wait returns
// when all have ended.
func (g *Group) Start(ctx context.Context) (wait func()) {
	var running errgroup.Group
	g.start(ctx, &running, func() {})
	return func() { _ = running.Wait() } // nothing depends on them any more
}

// Lead runs the components of the leader until ctx ends.
func (g *Group) Lead(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	for _, c := range g.components {
		if c.NeedLeaderElection() {
			running.Go(func() { _ = c.Run(ctx) }) // they report their own errors, and are run again by the next leader
		}
	}
}
