package background

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/background/internal/follow"
	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/parts"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/background/internal/writelimit"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/set"
)

// rule is the state of a rule besides its content.
type rule struct {
	form string // of its policy
	// since is the time when the rule was added; zero for one that existed at the start.
	since time.Time
}

// Controller applies generate rules and mutations of existing objects. Create one with New.
type Controller struct {
	options Options
	queue   *queue.Queue
	there   *downstreams
	limiter *writelimit.Limiter[queue.Key]
	parts   *parts.Parts // of triggers
	sources *follow.Follower
	wake    chan struct{} // for a review

	mu       sync.Mutex
	set      *set.Set
	rules    map[queue.RuleID]rule
	progress Progress
	hashes   map[queue.Key]inspect.Sum // of triggers, at their last evaluation
	// positions are those of the watches with rules for deletions.
	positions map[watched]string
	// unwatched: triggers may exist that are not watched yet.
	unwatched bool
	// watches are changed only by review, under the lock.
	watches map[watched]*watching
}

// New creates a Controller, and returns an error for a missing required option.
func New(o Options) (*Controller, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Controller{
		wake: make(chan struct{}, 1), options: o, queue: queue.New(), there: newDownstreams(), limiter: writelimit.New[queue.Key](o.Now),
		rules: map[queue.RuleID]rule{}, hashes: map[queue.Key]inspect.Sum{}, parts: parts.New(),
		positions: map[watched]string{}, watches: map[watched]*watching{},
	}
	c.sources = follow.New(watcher{c})
	return c, nil
}

// Run works until ctx ends, and returns when all of its goroutines have ended. It is run once, on
// the leader.
func (c *Controller) Run(ctx context.Context) {
	if !c.load(ctx) {
		return
	}
	var all sync.WaitGroup
	defer c.sources.Wait() // after the workers, which add to it
	defer all.Wait()
	defer c.stopAll()
	for range workers {
		all.Go(func() { c.work(ctx) })
	}
	all.Go(func() { c.save(ctx) })
	for ctx.Err() == nil {
		next := c.options.Policies.Changed()
		pause := reviewInterval
		if err := c.review(ctx); err != nil && ctx.Err() == nil {
			c.options.Observer.Failed(err)
			pause = firstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-next:
		case <-c.wake:
		case <-timer.C:
			if more := c.sources.Overflow(); more > 0 {
				c.options.Observer.Failed(fmt.Errorf("more than %d sources of generated objects are in use: those of %d triggers are read again every %s",
					follow.MaxFollowed, more, reviewInterval))
			}
		}
		timer.Stop()
	}
}

// load loads the progress of the previous leader, and returns false if ctx ends first.
func (c *Controller) load(ctx context.Context) bool {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		progress, err := c.options.Memory.Load(ctx)
		if err == nil {
			if progress.Until.IsZero() {
				progress.Until = c.options.Now() // first leader: there is no backlog
			}
			c.progress, c.positions = progress, restorePositions(progress.Positions)
			return true
		}
		if ctx.Err() == nil {
			c.options.Observer.Failed(fmt.Errorf("read how far the work on other objects has come: %w", err))
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-timer.C:
		}
	}
}

// save saves the progress periodically.
func (c *Controller) save(ctx context.Context) {
	ticker := time.NewTicker(saveInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.saveNow(ctx)
		}
	}
}

// saveNow advances the saved time only if all earlier work is done.
func (c *Controller) saveNow(ctx context.Context) {
	until := c.options.Now().Add(-slack)
	c.mu.Lock()
	reached := positionsOf(c) // before the queue is looked at, which has the work for all that was reached
	if c.set != nil && !c.unwatched {
		if !c.queue.HasDeletions() {
			c.progress.Positions = reached
		}
		if c.queue.Idle() && until.After(c.progress.Until) && c.settled() {
			c.progress.Until = until
		}
	}
	progress, idle := c.progress, len(c.rules)+len(c.progress.Kinds) == 0
	c.mu.Unlock()
	if idle {
		return // the rule does not exist now, and did not before
	}
	if err := c.options.Memory.Save(ctx, progress); err != nil && ctx.Err() == nil {
		c.options.Observer.Failed(fmt.Errorf("save how far the work on other objects has come: %w", err))
	}
}

// current returns the policies of the current work.
func (c *Controller) current() *set.Set {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.set
}

// due returns the time from which on events of triggers count for a rule.
func (c *Controller) due(p *policy.Policy, name string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := c.progress.Until
	for _, other := range []time.Time{p.Created, c.rules[queue.RuleID{Policy: p.ID(), Rule: name}].since} {
		if other.After(due) {
			due = other
		}
	}
	return due.Truncate(time.Second) // the precision of object times
}

// kinds returns the kinds of objects that rules may have generated.
func (c *Controller) kinds() []policy.ObjectKind {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.progress.Kinds)
}

// work processes triggers until ctx ends.
func (c *Controller) work(ctx context.Context) {
	for {
		at, w, ok := c.queue.Next(ctx)
		if !ok {
			return
		}
		pause, again := c.guarded(ctx, at, w)
		if again && ctx.Err() == nil {
			w.Tries++
			if !c.queue.AddLater(at, w, pause(w.Tries)) {
				giveUp(c.options.Observer, w)
			}
		}
		c.queue.Done(at)
	}
}

// guarded processes a trigger, and converts a panic to an error. It reports whether to retry, and
// when.
func (c *Controller) guarded(ctx context.Context, at queue.Key, w queue.Work) (pause func(tries int) time.Duration, again bool) {
	pause = backoff
	defer func() {
		if p := recover(); p != nil {
			c.options.Observer.Failed(fmt.Errorf("internal error at %s, which is a defect: %v", at, p))
			again = w.Cause&queue.Deleted == 0 || w.Tries < maxDeletionTries
		}
	}()
	e := evaluation{Controller: c, at: at, work: w}
	e.reconcile(ctx)
	if e.pause > 0 {
		pause = func(int) time.Duration { return e.pause }
	}
	return pause, e.again
}

// backoff is the pause after so many attempts.
func backoff(tries int) time.Duration {
	pause := firstPause
	for range min(tries-1, 20) {
		pause = min(2*pause, longestPause)
	}
	return pause
}

// enqueue queues a trigger of which only the name is known.
func (c *Controller) enqueue(t record.Trigger) { c.queue.Add(queue.KeyOf(t), queue.Work{Trigger: t}) }

// putBack queues a trigger because one of its generated objects was changed or deleted.
func (c *Controller) putBack(t record.Trigger, origin record.Origin) {
	rules := map[queue.RuleID]bool{{Policy: origin.Policy, Rule: origin.Rule}: true}
	c.queue.Add(queue.KeyOf(t), queue.Work{Trigger: t, Cause: queue.Restore, Rules: rules})
}
