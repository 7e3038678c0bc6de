package background

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
	"github.com/quaymaster/quaymaster/policy/set"
)

// The labels of generated objects. They name the rule and the trigger in Kyverno's spelling, for
// users and tools; a digest replaces a value that is no valid label. Only the record is trusted.
const (
	generatedLabel = "quaymaster.dev/generated"
	generatedQuery = generatedLabel + "=true"
	managedLabel   = "app.kubernetes.io/managed-by"
	kyvernoPrefix  = "generate.kyverno.io/"
)

// settleTimeout bounds the wait for the lists of generated objects before triggers are processed,
// so that a kind without list permission blocks nothing else.
const settleTimeout = 30 * time.Second

// watched identifies a watch.
type watched struct {
	kind       Kind
	namespace  string // empty: all
	downstream bool
}

// watching is an active watch.
type watching struct {
	stop    context.CancelFunc
	done    chan struct{}
	settled chan struct{} // closed once the first list succeeded or failed
	ended   <-chan struct{}
	// deletions: some rule has them as triggers.
	deletions bool

	mu     sync.Mutex
	synced bool // the list succeeded, and there was no error since
}

func (w *watching) settle(synced bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.synced = synced
	select {
	case <-w.settled:
	default:
		close(w.settled)
	}
}

// purpose is what rules need of a watch.
type purpose struct {
	// fresh are the rules that were added or changed.
	fresh map[queue.RuleID]bool
	// deletions: some rule has them as triggers.
	deletions bool
}

// review reads the policies and adapts the watches.
func (c *Controller) review(ctx context.Context) error {
	set := c.options.Policies.Policies()
	if set == nil {
		return nil
	}
	c.reviewing(true)
	rules, kinds := rulesOf(set)
	fresh, gone := c.adopt(ctx, set, rules, kinds)
	var errs []error
	wanted := map[watched]purpose{}
	for _, kind := range c.kinds() {
		found, err := c.options.Cluster.Kind(ctx, kind)
		if err == nil {
			wanted[watched{kind: found, downstream: true}] = purpose{}
		} else if !errors.Is(err, ErrNotServed) {
			errs = append(errs, fmt.Errorf("find %s %s: %w", kind.APIVersion, kind.Kind, err))
		}
	}
	c.keep(ctx, wanted, true, len(errs) == 0)
	c.await(ctx)
	clear(wanted)
	for id, targets := range rules {
		if err := c.want(ctx, wanted, id, targets, fresh[id]); err != nil {
			errs = append(errs, err)
		}
	}
	covered(wanted)
	if len(wanted) > maxWatches {
		return fmt.Errorf("rules about other objects want %d watches, and at most %d are kept: let them match fewer kinds and namespaces", len(wanted), maxWatches)
	}
	c.keep(ctx, wanted, false, len(errs) == 0)
	for _, k := range c.there.all(func(k *kept) bool { return gone[queue.RuleID{Policy: k.origin.Policy, Rule: k.origin.Rule}] }) {
		c.enqueue(k.origin.Trigger)
	}
	err := errors.Join(errs...)
	c.reviewing(err != nil)
	return err
}

// reviewing records whether triggers may exist that are not watched yet.
func (c *Controller) reviewing(is bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwatched = is
}

// rulesOf returns the triggers of each rule, and the kinds of generated objects.
func rulesOf(set *set.Set) (map[queue.RuleID][]policy.Target, []policy.ObjectKind) {
	rules := map[queue.RuleID][]policy.Target{}
	var kinds []policy.ObjectKind
	for _, p := range set.Policies() {
		for _, g := range p.Generations {
			rules[queue.RuleID{Policy: p.ID(), Rule: g.Name()}] = g.Targets()
			for _, kind := range g.Terms().Kinds {
				if !slices.Contains(kinds, kind) {
					kinds = append(kinds, kind)
				}
			}
		}
		for _, a := range p.Alterations {
			rules[queue.RuleID{Policy: p.ID(), Rule: a.Name()}] = a.Targets()
		}
	}
	return rules, kinds
}

// adopt sets the policies of the current work. It returns the rules that were added or changed,
// and those that were removed or are unknown.
func (c *Controller) adopt(
	ctx context.Context, set *set.Set, rules map[queue.RuleID][]policy.Target, kinds []policy.ObjectKind,
) (fresh, gone map[queue.RuleID]bool) {
	c.mu.Lock()
	first := c.set == nil
	c.set = set
	fresh, gone = map[queue.RuleID]bool{}, map[queue.RuleID]bool{}
	now, older := map[queue.RuleID]rule{}, map[string]bool{}
	for id := range c.rules {
		older[id.Policy] = true
	}
	for _, p := range set.Policies() {
		for id := range rules {
			if id.Policy != p.ID() {
				continue
			}
			had, known := c.rules[id]
			one := rule{form: p.Form(), since: had.since}
			switch {
			case first || known:
			case older[id.Policy]: // a rule was added to it
				one.since = c.options.Now()
			default:
				one.since = addedAt(p, c.options.Now())
			}
			fresh[id] = !known || had.form != one.form
			now[id] = one
		}
	}
	c.rules = now
	added := false
	for _, kind := range kinds {
		if !slices.Contains(c.progress.Kinds, kind) {
			c.progress.Kinds, added = append(slices.Clone(c.progress.Kinds), kind), true
		}
	}
	c.mu.Unlock()
	for _, k := range c.there.all(func(*kept) bool { return true }) {
		id := queue.RuleID{Policy: k.origin.Policy, Rule: k.origin.Rule}
		if _, known := now[id]; !known {
			gone[id] = true
		}
	}
	c.sources.Retain(func(_ queue.Key, id queue.RuleID) bool { _, known := now[id]; return known })
	c.forget(kinds)
	if added {
		c.saveNow(ctx) // before any object of the kind exists
	}
	return fresh, gone
}

// addedAt returns the time from which on the rules of a new policy count: if it was just created, its
// creation, so that no trigger between that and its adoption is lost.
func addedAt(p *policy.Policy, now time.Time) time.Time {
	if p.Created.Before(now) && now.Sub(p.Created) <= slack {
		return p.Created
	}
	return now
}

// forget removes the kinds that no rule generates and that have no objects.
func (c *Controller) forget(made []policy.ObjectKind) {
	for w, at := range c.watches {
		at.mu.Lock()
		synced := at.synced
		at.mu.Unlock()
		if !w.downstream || !synced || slices.ContainsFunc(made, func(k policy.ObjectKind) bool { return isOf(k, w.kind) }) {
			continue
		}
		if len(c.there.all(func(k *kept) bool { return k.kind == w.kind })) > 0 {
			continue
		}
		c.mu.Lock()
		c.progress.Kinds = slices.DeleteFunc(slices.Clone(c.progress.Kinds), func(k policy.ObjectKind) bool { return isOf(k, w.kind) })
		c.mu.Unlock()
	}
}

func isOf(k policy.ObjectKind, kind Kind) bool {
	return k.Kind == kind.Kind && inspect.Group(k.APIVersion) == kind.Group
}

// want adds the watches that a rule needs.
func (c *Controller) want(ctx context.Context, wanted map[watched]purpose, id queue.RuleID, targets []policy.Target, fresh bool) error {
	for _, target := range targets {
		kinds, err := c.options.Cluster.Served(ctx, target)
		if err != nil {
			return fmt.Errorf("find the triggers of %s/%s: %w", id.Policy, id.Rule, err)
		}
		for _, kind := range kinds {
			namespaces := target.Namespaces
			if !kind.Namespaced || len(namespaces) == 0 || slices.ContainsFunc(namespaces, wildcard.Contains) {
				namespaces = []string{""}
			}
			for _, namespace := range namespaces {
				w := watched{kind: kind, namespace: namespace}
				p := wanted[w]
				if p.fresh == nil {
					p.fresh = map[queue.RuleID]bool{}
				}
				if fresh {
					p.fresh[id] = true
				}
				p.deletions = p.deletions || target.Subresource == "" && target.IsAt(opDelete)
				wanted[w] = p
			}
		}
	}
	return nil
}

// covered removes watches of one namespace where all namespaces are watched.
func covered(wanted map[watched]purpose) {
	for w, p := range wanted {
		all := w
		all.namespace = ""
		if into, is := wanted[all]; w.namespace != "" && is {
			maps.Copy(into.fresh, p.fresh)
			into.deletions = into.deletions || p.deletions
			wanted[all] = into
			delete(wanted, w)
		}
	}
}

// keep stops the watches, of triggers or of generated objects, that are not required, and starts
// the missing ones. It stops none unless the list of required watches is complete.
func (c *Controller) keep(ctx context.Context, wanted map[watched]purpose, downstream, all bool) {
	if all && !downstream {
		c.mu.Lock()
		maps.DeleteFunc(c.positions, func(w watched, _ string) bool { return !wanted[w].deletions }) // else a later rule would receive earlier deletions
		c.mu.Unlock()
	}
	for w, at := range c.watches {
		if _, is := wanted[w]; !is && all && w.downstream == downstream {
			c.end(w, at, false)
		}
	}
	c.start(ctx, wanted)
}

// start starts watches. It restarts the watches of added or changed rules, so that all triggers
// are listed.
func (c *Controller) start(ctx context.Context, wanted map[watched]purpose) {
	for w, p := range wanted {
		if at := c.watches[w]; at != nil {
			if len(p.fresh) == 0 && p.deletions == at.deletions {
				continue
			}
			c.end(w, at, true)
		}
		within, stop := context.WithCancel(ctx)
		at := &watching{stop: stop, done: make(chan struct{}), settled: make(chan struct{}), ended: within.Done(), deletions: p.deletions}
		var to Sink = &triggerSink{Controller: c, watched: w, at: at, rules: p.fresh, deletions: p.deletions}
		query := ""
		if w.downstream {
			to, query = &downstreamSink{Controller: c, kind: w.kind, at: at}, generatedQuery
		}
		c.mu.Lock()
		c.watches[w] = at
		c.mu.Unlock()
		go func() {
			defer close(at.done)
			c.options.Cluster.Watch(within, w.kind, w.namespace, query, to)
		}()
	}
}

// end ends a watch. If it is started again, the parts of its objects remain known.
func (c *Controller) end(w watched, at *watching, again bool) {
	at.stop()
	<-at.done
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.watches, w)
	if !w.downstream {
		maps.DeleteFunc(c.hashes, func(k queue.Key, _ inspect.Sum) bool { return k.Kind == w.kind.Kind && k.Group == w.kind.Group })
		if !again {
			c.parts.RemoveAll(w.kind.APIVersion(), w.kind.Kind)
		}
	}
}

func (c *Controller) stopAll() {
	for w, at := range c.watches {
		c.end(w, at, false)
	}
}

// await waits for the lists of generated objects.
func (c *Controller) await(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for w, at := range c.watches {
		if w.downstream {
			select {
			case <-at.settled:
			case <-ctx.Done():
			}
		}
	}
}

// settled reports whether every watch works; the caller holds the lock.
func (c *Controller) settled() bool {
	for _, at := range c.watches {
		at.mu.Lock()
		synced := at.synced
		at.mu.Unlock()
		if !synced {
			return false
		}
	}
	return true
}
