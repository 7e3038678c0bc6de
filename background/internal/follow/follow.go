// Package follow watches the sources of generated objects, and reports the triggers of a rule whenever one of
// its sources changes.
//
// A source is watched as long as a trigger's result was read from it, once for all triggers. The number of
// watches is bounded; the triggers of further sources are reported at intervals instead.
package follow

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/background/internal/inspect"
	"github.com/quaymaster/quaymaster/background/internal/queue"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
	"github.com/quaymaster/quaymaster/policy/source"
)

const (
	// MaxFollowed bounds the watched sources: each needs a stream.
	MaxFollowed = 100
	// maxSums bounds the objects of a source whose content is known. A rule with more fails.
	maxSums = source.MaxObjects
)

// Watcher watches sources, and receives the triggers of changed ones.
type Watcher interface {
	// WatchSource passes the objects of a source to a feed until ctx ends, and retries by itself.
	WatchSource(ctx context.Context, of source.Ref, to *Feed)
	// SourceChanged: a source of a rule's result for a trigger has changed, or may have.
	SourceChanged(trigger record.Trigger, rule queue.RuleID)
	// SourceFailed: a source cannot be watched now.
	SourceFailed(of source.Ref, err error)
}

// use is a rule's result for a trigger.
type use struct {
	at   queue.Key
	rule queue.RuleID
}

// Follower watches the sources in use. It is safe for concurrent use. Create one with New.
type Follower struct {
	watcher Watcher
	running sync.WaitGroup

	mu    sync.Mutex
	uses  map[use]record.Trigger
	feeds map[source.Ref]*Feed
	// overflow are the uses with a source that is not watched.
	overflow map[use]bool
	// changes counts the changes of all sources.
	changes uint64
}

// New returns a Follower of nothing.
func New(w Watcher) *Follower {
	return &Follower{watcher: w, uses: map[use]record.Trigger{}, feeds: map[source.Ref]*Feed{}, overflow: map[use]bool{}}
}

// Moment returns a time for Set, before an evaluation reads its sources.
func (f *Follower) Moment() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changes
}

// Set replaces the sources of a rule's result for a trigger; none end it. Sources are watched until ctx ends.
// A source that has changed since the moment is reported at once.
func (f *Follower) Set(ctx context.Context, trigger record.Trigger, rule queue.RuleID, sources []source.Ref, moment uint64) {
	of := use{queue.KeyOf(trigger), rule}
	f.mu.Lock()
	isStale := f.set(ctx, of, trigger, sources, moment)
	f.mu.Unlock()
	if isStale {
		f.watcher.SourceChanged(trigger, rule)
	}
}

// set is Set; the caller holds the lock. It reports whether a source has changed.
func (f *Follower) set(ctx context.Context, of use, trigger record.Trigger, sources []source.Ref, moment uint64) (isStale bool) {
	f.release(of, sources)
	if len(sources) == 0 {
		return false
	}
	f.uses[of] = trigger
	for _, ref := range sources {
		feed := f.feeds[ref]
		if feed == nil {
			if len(f.feeds) >= MaxFollowed {
				f.overflow[of] = true
				continue
			}
			feed = f.start(ctx, ref)
		}
		feed.uses[of] = true
		isStale = isStale || feed.changed > moment
	}
	return isStale
}

// start watches a source; the caller holds the lock.
func (f *Follower) start(ctx context.Context, ref source.Ref) *Feed {
	within, stop := context.WithCancel(ctx)
	feed := &Feed{follower: f, ref: ref, stop: stop, uses: map[use]bool{}, sums: map[string]inspect.Sum{}}
	f.feeds[ref] = feed
	f.running.Go(func() { f.watcher.WatchSource(within, ref, feed) })
	return feed
}

// release ends the use of all sources but those that are kept; the caller holds the lock.
func (f *Follower) release(of use, kept []source.Ref) {
	delete(f.uses, of)
	delete(f.overflow, of)
	for ref, feed := range f.feeds {
		if feed.uses[of] && !slices.Contains(kept, ref) {
			delete(feed.uses, of)
			if len(feed.uses) == 0 {
				feed.stop()
				delete(f.feeds, ref)
			}
		}
	}
}

// Keep ends the results for a trigger of the rules that is does not keep.
func (f *Follower) Keep(at queue.Key, is func(queue.RuleID) bool) {
	f.Retain(func(key queue.Key, rule queue.RuleID) bool { return key != at || is(rule) })
}

// Retain ends the results that is does not keep.
func (f *Follower) Retain(is func(queue.Key, queue.RuleID) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for of := range f.uses {
		if !is(of.at, of.rule) {
			f.release(of, nil)
		}
	}
}

// Overflow reports the triggers with a source that is not watched, as if it had changed.
func (f *Follower) Overflow() int {
	f.mu.Lock()
	reported := map[use]record.Trigger{}
	for of := range f.overflow {
		reported[of] = f.uses[of]
	}
	f.mu.Unlock()
	f.report(reported)
	return len(reported)
}

func (f *Follower) report(uses map[use]record.Trigger) {
	for of, trigger := range uses {
		f.watcher.SourceChanged(trigger, of.rule)
	}
}

// Wait returns when no source is watched any more. The contexts of Set have to end first.
func (f *Follower) Wait() { f.running.Wait() }

// Feed receives the objects of one source, from one goroutine.
type Feed struct {
	follower *Follower
	ref      source.Ref
	stop     context.CancelFunc

	// The lock of the Follower guards these.
	uses    map[use]bool
	changed uint64

	sums map[string]inspect.Sum
	// seen are the objects of a list.
	seen map[string]bool
	// differs: the current list, or an earlier one that failed, differs from the state before. The first one
	// does: the source may have changed since it was read.
	differs, listed bool
}

// Listing begins a list of all objects, which follow by Listed, ended by Synced.
func (f *Feed) Listing() { f.seen, f.differs = map[string]bool{}, f.differs || !f.listed }

// Listed receives an object of a list.
func (f *Feed) Listed(object map[string]any) {
	at := queue.KeyOf(inspect.Identity(object)).String()
	f.seen[at] = true
	f.differs = f.put(at, object) || f.differs
}

// Synced ends a list, which is complete.
func (f *Feed) Synced() {
	f.listed = true
	before := len(f.sums)
	maps.DeleteFunc(f.sums, func(at string, _ inspect.Sum) bool { return !f.seen[at] })
	f.seen = nil
	if f.differs || len(f.sums) != before {
		f.report()
	}
	f.differs = false
}

// Changed receives an object that was created or changed.
func (f *Feed) Changed(object map[string]any, _ bool) {
	if f.put(queue.KeyOf(inspect.Identity(object)).String(), object) {
		f.report()
	}
}

// Deleted receives an object that was deleted, or is not selected any more.
func (f *Feed) Deleted(object map[string]any) {
	delete(f.sums, queue.KeyOf(inspect.Identity(object)).String())
	f.report()
}

// Failed reports that the watch failed; it is retried.
func (f *Feed) Failed(err error) { f.follower.watcher.SourceFailed(f.ref, err) }

// put stores the content of an object, and reports whether it is new. That of an object beyond the bound is
// always new.
func (f *Feed) put(at string, object map[string]any) bool {
	is := inspect.SumOf(inspect.Essence(object))
	had, known := f.sums[at]
	if known || len(f.sums) < maxSums {
		f.sums[at] = is
	}
	return !known || had != is
}

// report reports the triggers of the source.
func (f *Feed) report() {
	f.follower.mu.Lock()
	f.follower.changes++
	f.changed = f.follower.changes
	reported := map[use]record.Trigger{}
	for of := range f.uses {
		reported[of] = f.follower.uses[of]
	}
	f.follower.mu.Unlock()
	f.follower.report(reported)
}
