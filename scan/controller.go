package scan

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// ControllerOptions are the dependencies of a Controller besides a Scanner. Fields are required
// unless marked as optional.
type ControllerOptions struct {
	Policies Policies
	Memory   Memory
	// Settled is the time after which results are durable; 0 means at once. A position is saved
	// no sooner.
	Settled time.Duration
	// Again receives an element to start a whole round soon, regardless of the interval; may be
	// nil.
	Again <-chan struct{}
	// Interval is the interval between the starts of two rounds, at least a minute; 0 means an
	// hour.
	Interval time.Duration
}

// Controller runs rounds, one at a time. Create one with NewController, and Run it on the leader.
type Controller struct {
	scanner *Scanner
	options ControllerOptions
	saver   saver
	caught  time.Time // the last check for kinds behind
}

// NewController creates a Controller, and returns an error for a missing required option.
func NewController(s *Scanner, o ControllerOptions) (*Controller, error) {
	if s == nil || o.Policies == nil || o.Memory == nil {
		return nil, errors.New("scan: the scanner, the policies and the memory are required")
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Interval < MinInterval || o.Settled < 0 {
		return nil, fmt.Errorf("scan: interval %s: want %s or more, and what settles not to take less than nothing", o.Interval, MinInterval)
	}
	c := &Controller{scanner: s, options: o}
	c.saver = saver{memory: o.Memory, settled: o.Settled, observer: s.options.Observer, now: s.options.Now}
	return c, nil
}

// Run runs rounds until ctx ends. It continues an unfinished round of another leader. It starts a
// new one at the interval, and when policies, trust or mirrors have changed.
func (c *Controller) Run(ctx context.Context) {
	var saving sync.WaitGroup
	defer saving.Wait()
	p, ok := c.load(ctx)
	if !ok {
		return
	}
	if c.scanner.follows && !p.unfinished() {
		p.Whole = time.Time{} // no watch covered the time since
	}
	saving.Go(func() { c.saver.run(ctx) })
	var last *gate.Snapshot // the state of the last round; nil: unknown
	for ctx.Err() == nil {
		if !p.unfinished() {
			next, now, ok := c.due(ctx, p, last)
			if !ok {
				return
			}
			p, last = next, now
			c.saver.reached(p)
		}
		p = c.round(ctx, p)
	}
}

// round continues a round to its end, and returns its position. A kind that fails permanently is
// skipped.
func (c *Controller) round(ctx context.Context, p Position) Position {
	failures, failed := 0, Kind{}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		_, err := c.scanner.from(ctx, p, func(reached Position) {
			p = reached
			c.saver.reached(p)
		})
		if err == nil || ctx.Err() != nil {
			return p
		}
		c.scanner.options.Observer.Failed(fmt.Errorf("a round is not done yet: %w", err))
		failures++
		if failed != p.Kind {
			failures, failed = 1, p.Kind
		}
		if failures == maxPauses && p.Kind != (Kind{}) {
			c.scanner.options.Observer.Refused(p.Kind, err)
			p.GivenUp, p.Continue, failures = true, "", 0
		}
		if !wait(ctx, pause) {
			return p
		}
	}
}

// load loads the position of the previous leader, and returns false if ctx ends first.
func (c *Controller) load(ctx context.Context) (Position, bool) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		p, err := c.options.Memory.Load(ctx)
		if err == nil {
			return p, true
		}
		c.scanner.options.Observer.Failed(fmt.Errorf("read how far the scan has come: %w", err))
		if !wait(ctx, pause) {
			return p, false
		}
	}
}

// due waits until a round is due and returns it, and false if ctx ends first.
func (c *Controller) due(ctx context.Context, done Position, last *gate.Snapshot) (Position, *gate.Snapshot, bool) {
	clock, observer := c.scanner.options.Now, c.scanner.options.Observer
	for again := false; ; {
		next := c.options.Policies.Changed()
		behind, fell := c.scanner.options.Follower.Behind()
		now, err := c.scanner.options.State.Snapshot(ctx)
		if err == nil && basisOf(now) != done.Basis {
			if last != nil && !wait(ctx, settling) { // changes without a leader have settled
				return Position{}, nil, false
			}
			now, err = c.scanner.options.State.Snapshot(ctx)
			if err == nil {
				return c.begin(now, done, c.concerned(ctx, last, now)), &now, true
			}
		}
		if err != nil {
			observer.Failed(err)
		} else if again || !clock().Before(done.Whole.Add(c.options.Interval)) {
			return c.begin(now, done, nil), &now, true
		} else if len(behind) > 0 && !clock().Before(c.caught.Add(catchUp)) {
			c.caught = clock()
			return c.begin(now, done, behind), &now, true
		}
		timer := time.NewTimer(min(noticing, max(done.Whole.Add(c.options.Interval).Sub(clock()), firstPause)))
		select {
		case <-ctx.Done():
		case <-next:
		case <-fell:
		case <-c.options.Again:
			again = true
		case <-timer.C:
		}
		timer.Stop()
		if ctx.Err() != nil {
			return Position{}, nil, false
		}
	}
}

// begin returns the initial position of a round of some kinds, or of all.
func (c *Controller) begin(now gate.Snapshot, done Position, only []Kind) Position {
	p := Position{Began: c.scanner.options.Now(), Whole: done.Whole, Basis: basisOf(now), Only: only}
	if len(only) == 0 {
		p.Whole = p.Began
	}
	return p
}

// concerned returns the kinds that a change may affect; none means all.
func (c *Controller) concerned(ctx context.Context, last *gate.Snapshot, now gate.Snapshot) []Kind {
	if last == nil {
		return nil
	}
	was, is := basisOf(*last), basisOf(now)
	was.Policies = is.Policies
	differ := changed(last.Policies, now.Policies)
	if was != is || len(differ) == 0 || !sameBeside(last.Policies, now.Policies) {
		return nil
	}
	served, err := c.scanner.options.Cluster.Kinds(ctx)
	if err != nil {
		return nil
	}
	var targets []policy.Target
	for _, p := range differ {
		targets = append(targets, targetsOf(p, c.scanner.options.Mutations)...)
	}
	if kinds := KindsOf(targets, served); len(kinds) > 0 {
		return kinds
	}
	return []Kind{{}} // no existing kind, as opposed to all
}

// sameBeside reports whether two sets have the same exceptions and overrides.
func sameBeside(a, b *set.Set) bool {
	return slices.EqualFunc(a.Exceptions(), b.Exceptions(),
		func(a, b *policy.Exception) bool { return a.Group == b.Group && a.ID() == b.ID() && a.Hash == b.Hash }) &&
		slices.EqualFunc(a.Overrides(), b.Overrides(), func(a, b *policy.Override) bool { return a.Name == b.Name && a.Hash == b.Hash })
}

// saver saves positions, each after the results before it are durable.
type saver struct {
	memory   Memory
	settled  time.Duration
	observer Observer
	now      func() time.Time

	mu     sync.Mutex
	newest *reached
	// ripening are positions that were the newest at each interval, the oldest first.
	ripening []reached
}

type reached struct {
	position Position
	at       time.Time
}

// reached records a position.
func (s *saver) reached(p Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest = &reached{p, s.now()}
}

// run saves until ctx ends.
func (s *saver) run(ctx context.Context) {
	for wait(ctx, saveInterval) {
		s.save(ctx)
	}
}

// save saves the newest durable position, and retries a failed save.
func (s *saver) save(ctx context.Context) {
	s.mu.Lock()
	if s.newest != nil {
		s.ripening, s.newest = append(s.ripening, *s.newest), nil
	}
	ripe := 0
	for ripe < len(s.ripening) && !s.now().Before(s.ripening[ripe].at.Add(s.settled)) {
		ripe++
	}
	if ripe == 0 {
		s.mu.Unlock()
		return
	}
	s.ripening = s.ripening[ripe-1:]
	p := s.ripening[0].position
	s.mu.Unlock()
	err := s.memory.Save(ctx, p)
	if err != nil {
		if ctx.Err() == nil {
			s.observer.Failed(fmt.Errorf("save how far the scan has come: %w", err))
		}
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ripening = slices.Delete(s.ripening, 0, 1)
}
