package cleanup

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// Controller deletes objects. Create one with New.
type Controller struct {
	options Options
	ledger  *ledger
	woken   chan struct{} // a run ended

	mu      sync.Mutex
	running map[string]bool // by the keys of rules
}

// New creates a Controller, and returns an error for invalid options.
func New(o Options) (*Controller, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Controller{options: o, ledger: &ledger{store: o.Store}, woken: make(chan struct{}, 1), running: map[string]bool{}}, nil
}

// Run works until ctx ends, and returns when all runs have ended. It is run once, on the leader.
func (c *Controller) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { c.followPermissions(ctx) })
	if c.options.Grants != nil {
		all.Go(func() { c.sweepAll(ctx) })
	}
	for ctx.Err() == nil {
		if err := c.ledger.load(ctx); err != nil {
			c.failed(ctx, err)
			wait(ctx, pause)
			continue
		}
		if err := c.schedule(ctx); err != nil {
			c.failed(ctx, err)
			wait(ctx, pause)
		}
	}
}

// schedule starts runs until ctx ends, or until the records of runs are to be read again. It returns
// when all runs have ended.
func (c *Controller) schedule(ctx context.Context) error {
	var runs sync.WaitGroup
	defer runs.Wait()
	for ctx.Err() == nil {
		changed, next := c.options.Policies.Changed(), longestWait
		if active := c.options.Policies.Policies(); active != nil {
			rules := rulesOf(active)
			if len(rules) > maxPolicies {
				c.failed(ctx, fmt.Errorf("%d rules have a schedule, more than %d (maxPolicies): the last by the names of their policies are not run", len(rules), maxPolicies))
				rules = rules[:maxPolicies]
			}
			if err := c.prepare(ctx, rules); err != nil {
				return err
			}
			next = min(next, c.start(ctx, &runs, rules))
		}
		timer := time.NewTimer(next)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-c.woken:
		case <-timer.C:
		}
		timer.Stop()
		if c.ledger.isStale() {
			return fmt.Errorf("the runs are resumed: %w", ErrConflict)
		}
	}
	return nil
}

// scheduled is a rule with a schedule.
type scheduled struct {
	policy *policy.Policy
	rule   policy.Deletion
}

func (s scheduled) key() string { return keyOf(s.policy, s.rule.Name()) }

// rulesOf returns the rules with a schedule, those of cluster-wide policies first. Broken policies
// have none.
func rulesOf(active *set.Set) []scheduled {
	var all, own []scheduled
	for _, p := range active.Policies() {
		if p.Broken != nil {
			continue
		}
		for _, rule := range p.Deletions {
			if p.Namespace == "" {
				all = append(all, scheduled{p, rule})
			} else {
				own = append(own, scheduled{p, rule})
			}
		}
	}
	return append(all, own...)
}

// prepare records the rules that are new or changed, and removes the records of others.
func (c *Controller) prepare(ctx context.Context, rules []scheduled) error {
	now := c.options.Now()
	fresh, there := map[string]Record{}, map[string]bool{}
	for _, s := range rules {
		key, form := s.key(), formOf(s.policy)
		there[key] = true
		known, is := c.ledger.get(key)
		if !is || known.Form != form {
			fresh[key] = Record{Form: form, Scheduled: baseline(s.policy, is, now)}
		}
	}
	isOld := func(key string, r Record) bool { return !there[key] && now.Sub(r.Scheduled) > MaxLate }
	if len(fresh) == 0 && !c.ledger.has(isOld) {
		return nil
	}
	return c.ledger.update(ctx, func(runs map[string]Record) {
		maps.DeleteFunc(runs, isOld)
		maps.Copy(runs, fresh)
	})
}

// baseline returns the time from which the schedule of a policy counts: of a changed one now, and
// of a new one its creation, unless it was there long before this controller.
func baseline(p *policy.Policy, changed bool, now time.Time) time.Time {
	if !changed && p.Created.Before(now) && now.Sub(p.Created) <= MaxLate {
		return p.Created
	}
	return now
}

// start starts the due runs, and returns the time until the next one is due.
func (c *Controller) start(ctx context.Context, runs *sync.WaitGroup, rules []scheduled) time.Duration {
	next, now := longestWait, c.options.Now()
	for _, s := range rules {
		key := s.key()
		known, is := c.ledger.get(key)
		if !is {
			continue
		}
		at, continued := dueAt(s.rule, known, now)
		if at.IsZero() {
			if coming := s.rule.Next(now); !coming.IsZero() {
				next = min(next, coming.Sub(now))
			}
			continue
		}
		if !c.claim(key) {
			continue // it runs, or all workers are busy: the end of a run wakes this loop
		}
		runs.Go(func() {
			defer c.release(key)
			c.guarded(ctx, &run{Controller: c, scheduled: s, key: key, at: at, record: known, continued: continued})
		})
	}
	return max(next, time.Millisecond)
}

// dueAt returns the time of the schedule that is due, and whether its run is to be continued; zero
// for none.
func dueAt(rule policy.Deletion, known Record, now time.Time) (at time.Time, continued bool) {
	if known.Open {
		return known.Scheduled, true
	}
	from := known.Scheduled
	if earliest := now.Add(-MaxLate); from.Before(earliest) {
		from = earliest
	}
	for range maxTimes {
		next := rule.Next(from)
		if next.IsZero() || next.After(now) || !next.After(from) {
			break
		}
		at, from = next, next
	}
	return at, false
}

// claim reserves a worker for a rule; false if there is none, or the rule has one.
func (c *Controller) claim(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running[key] || len(c.running) >= workers {
		return false
	}
	c.running[key] = true
	return true
}

func (c *Controller) release(key string) {
	c.mu.Lock()
	delete(c.running, key)
	c.mu.Unlock()
	select {
	case c.woken <- struct{}{}:
	default: // it is woken already
	}
}

// guarded makes a run. A panic ends it with an error.
func (c *Controller) guarded(ctx context.Context, r *run) {
	defer func() {
		if p := recover(); p != nil {
			c.failed(ctx, fmt.Errorf("policy %s: internal error, which is a defect: %v", r.policy.ID(), p))
			r.result.note("internal error")
			r.finish(ctx, Errors)
		}
	}()
	r.do(ctx)
}

func (c *Controller) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		c.options.Observer.Failed(err)
	}
}

// has reports whether a record fulfils a condition.
func (l *ledger) has(is func(key string, r Record) bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(slices.Collect(maps.Keys(l.records.Runs)), func(key string) bool { return is(key, l.records.Runs[key]) })
}

func wait(ctx context.Context, lasts time.Duration) {
	timer := time.NewTimer(lasts)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
