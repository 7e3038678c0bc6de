package background

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
)

// key identifies a trigger, independent of the version.
type key struct {
	group, kind, namespace, name string
	// deleted is the UID of a deleted trigger, apart from a later object of its name; else empty.
	deleted string
}

// cause is the reason for evaluating a trigger; several may be combined.
type cause uint8

const (
	came    cause = 1 << iota // it was created
	changed                   // it changed
	listed                    // it exists, since an unknown time
	restore                   // a generated object of it was changed or deleted
	deleted                   // it was deleted, and the work has its last state
)

// work is a queued trigger.
type work struct {
	trigger record.Trigger
	object  map[string]any // as last observed; nil: it must be read, unless it is deleted
	size    int            // of the object, while it is queued
	cause   cause
	// rules are those that were added or changed, so that existing triggers count.
	rules map[ruleID]bool
	tries int
}

// join merges later work.
func (w *work) join(later work) {
	w.trigger, w.object, w.cause = later.trigger, later.object, w.cause|later.cause
	for id := range later.rules {
		if w.rules == nil {
			w.rules = map[ruleID]bool{}
		}
		w.rules[id] = true
	}
	if later.tries == 0 {
		w.tries = 0 // there is a new event
	}
}

// reading identifies a trigger in one version.
type reading struct {
	key
	apiVersion string
}

func readingOf(at key, w work) reading { return reading{at, w.trigger.APIVersion} }

// queue distributes triggers, each to one worker at a time. Events that arrive in the meantime
// wait, merged by version, since a rule may match only one version.
type queue struct {
	wake chan struct{}
	// room is signalled when held content is released.
	room chan struct{}

	mu      sync.Mutex
	ready   []key
	waiting map[key][]*work
	later   map[reading]*work // waiting for a timer
	busy    map[key]bool
	held    int
	// postponed is the content of deleted triggers that wait for a timer, in bytes.
	postponed int
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), room: make(chan struct{}, 1), waiting: map[key][]*work{}, later: map[reading]*work{}, busy: map[key]bool{}}
}

// add queues a trigger.
func (q *queue) add(at key, w work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if delayed := q.later[readingOf(at, w)]; delayed != nil {
		delete(q.later, readingOf(at, w))
		delayed.join(w)
		w = *delayed
	}
	q.put(at, w)
}

// put is add; the caller holds the lock.
func (q *queue) put(at key, w work) {
	if have := q.waitingIn(at, w); have != nil {
		q.release(have)
		have.join(w)
		q.hold(have)
		return
	}
	added, first := w, len(q.waiting[at]) == 0
	q.waiting[at] = append(q.waiting[at], &added)
	q.hold(&added)
	if first && !q.busy[at] {
		q.ready = append(q.ready, at)
		q.nudge()
	}
}

// waitingIn returns the queued work of a trigger in the version of a work; nil for none.
func (q *queue) waitingIn(at key, w work) *work {
	for _, have := range q.waiting[at] {
		if have.trigger.APIVersion == w.trigger.APIVersion {
			return have
		}
	}
	return nil
}

// hold accounts for the content of queued work, and drops content beyond the bound.
func (q *queue) hold(w *work) {
	if w.object == nil {
		return
	}
	w.size = limit.Held(w.object, maxHeld)
	if w.cause&deleted == 0 && q.held+w.size > maxHeld {
		w.object, w.size = nil, 0
	}
	q.held += w.size
}

// release subtracts the content.
func (q *queue) release(w *work) {
	q.held -= w.size
	w.size = 0
	signal(q.room)
}

// addLater queues a trigger after a pause. It returns false for a deleted trigger that would exceed
// the bound of content that waits for a timer.
func (q *queue) addLater(at key, w work, pause time.Duration) bool {
	var kept int
	if w.cause&deleted == 0 {
		w.object = nil // it will be outdated by then
	} else {
		kept = limit.Held(w.object, maxHeld)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waitingIn(at, w) != nil {
		w.tries = 0
		q.put(at, w)
		return true
	}
	if kept > 0 && q.postponed+kept > maxHeld {
		return false
	}
	q.postponed += kept
	delayed, in := &w, readingOf(at, w)
	q.later[in] = delayed
	time.AfterFunc(pause, func() { // after the end it adds to a queue that is no longer read
		q.mu.Lock()
		defer q.mu.Unlock()
		q.postponed -= kept
		if q.later[in] == delayed {
			delete(q.later, in)
			q.put(at, *delayed)
		}
	})
	return true
}

// awaitRoom waits until more content can be held, or stop is closed: the last state of a deleted
// trigger cannot be read again.
func (q *queue) awaitRoom(stop <-chan struct{}) {
	for {
		q.mu.Lock()
		free := q.held < maxHeld
		q.mu.Unlock()
		if free {
			signal(q.room) // to the next one that waits
			return
		}
		select {
		case <-stop:
			return
		case <-q.room:
		}
	}
}

func (q *queue) nudge() { signal(q.wake) }

// signal wakes one receiver, now or at its next wait.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// next returns the next work, and false once ctx has ended.
func (q *queue) next(ctx context.Context) (key, work, bool) {
	for {
		q.mu.Lock()
		if len(q.ready) > 0 && ctx.Err() == nil {
			at := q.ready[0]
			q.ready = q.ready[1:]
			w := q.waiting[at][0]
			q.waiting[at] = q.waiting[at][1:]
			if len(q.waiting[at]) == 0 {
				delete(q.waiting, at)
			}
			q.release(w)
			q.busy[at] = true
			if len(q.ready) > 0 {
				q.nudge()
			}
			q.mu.Unlock()
			return at, *w, true
		}
		q.mu.Unlock()
		select {
		case <-ctx.Done():
			return key{}, work{}, false
		case <-q.wake:
		}
	}
}

// done marks a trigger as processed.
func (q *queue) done(at key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.busy, at)
	if len(q.waiting[at]) > 0 {
		q.ready = append(q.ready, at)
		q.nudge()
	}
}

// idle reports whether there is neither queued work nor a pending retry.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)+len(q.later)+len(q.busy) == 0
}

// hasDeletions reports whether a deleted trigger is queued, in work, or waits for a retry. Other work does
// not keep a position from being saved: a rule may fail lastingly.
func (q *queue) hasDeletions() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	queued := slices.AppendSeq(slices.Collect(maps.Keys(q.waiting)), maps.Keys(q.busy))
	for in := range q.later {
		queued = append(queued, in.key)
	}
	return slices.ContainsFunc(queued, func(at key) bool { return at.deleted != "" })
}
