// Package queue distributes the triggers of rules about other objects to workers, and bounds the content
// that waits.
package queue

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/generate/record"
)

// maxHeld bounds the queued triggers' content, in bytes; the content of others is read again.
const maxHeld = 16 << 20

// RuleID identifies a rule by its policy's ID and its name.
type RuleID struct{ Policy, Rule string }

// Key identifies a trigger, independent of the version.
type Key struct {
	Group, Kind, Namespace, Name string
	// Deleted is the UID of a deleted trigger, apart from a later object of its name; else empty.
	Deleted string
	// Subresource is the one of a request; empty for the object itself.
	Subresource string
}

// KeyOf returns the key of an object.
func KeyOf(t record.Trigger) Key {
	group, _, grouped := strings.Cut(t.APIVersion, "/")
	if !grouped {
		group = ""
	}
	return Key{Group: group, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
}

// String returns the key in the form "kind namespace/name".
func (k Key) String() string {
	return k.Kind + " " + strings.TrimPrefix(k.Namespace+"/"+k.Name, "/")
}

// Cause is the reason for evaluating a trigger; several may be combined.
type Cause uint8

// The causes.
const (
	Came    Cause = 1 << iota // it was created
	Changed                   // it changed
	Listed                    // it exists, since an unknown time
	Restore                   // a generated object of it was changed or deleted
	Deleted                   // it was deleted, and the work has its last state
)

// Work is a queued trigger.
type Work struct {
	Trigger record.Trigger
	Object  map[string]any // as last observed; nil: it must be read, unless it is deleted
	size    int            // of the object, while it is queued
	Cause   Cause
	// Rules are those that were added or changed, so that existing triggers count.
	Rules map[RuleID]bool
	Tries int
}

// join merges later work.
func (w *Work) join(later Work) {
	w.Trigger, w.Object, w.Cause = later.Trigger, later.Object, w.Cause|later.Cause
	for id := range later.Rules {
		if w.Rules == nil {
			w.Rules = map[RuleID]bool{}
		}
		w.Rules[id] = true
	}
	if later.Tries == 0 {
		w.Tries = 0 // there is a new event
	}
}

// reading identifies a trigger in one version.
type reading struct {
	Key
	apiVersion string
}

func readingOf(at Key, w Work) reading { return reading{at, w.Trigger.APIVersion} }

// Queue distributes triggers, each to one worker at a time. Events that arrive in the meantime
// wait, merged by version, since a rule may match only one version.
type Queue struct {
	wake chan struct{}
	// room is signalled when held content is released.
	room chan struct{}

	mu      sync.Mutex
	ready   []Key
	waiting map[Key][]*Work
	later   map[reading]*Work // waiting for a timer
	busy    map[Key]bool
	held    int
	// postponed is the content of deleted triggers that wait for a timer, in bytes.
	postponed int
}

// New returns an empty queue.
func New() *Queue {
	return &Queue{wake: make(chan struct{}, 1), room: make(chan struct{}, 1), waiting: map[Key][]*Work{}, later: map[reading]*Work{}, busy: map[Key]bool{}}
}

// Add queues a trigger.
func (q *Queue) Add(at Key, w Work) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if delayed := q.later[readingOf(at, w)]; delayed != nil {
		delete(q.later, readingOf(at, w))
		delayed.join(w)
		w = *delayed
	}
	q.put(at, w)
}

// put is Add; the caller holds the lock.
func (q *Queue) put(at Key, w Work) {
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
func (q *Queue) waitingIn(at Key, w Work) *Work {
	for _, have := range q.waiting[at] {
		if have.Trigger.APIVersion == w.Trigger.APIVersion {
			return have
		}
	}
	return nil
}

// hold accounts for the content of queued work, and drops content beyond the bound.
func (q *Queue) hold(w *Work) {
	if w.Object == nil {
		return
	}
	w.size = limit.Held(w.Object, maxHeld)
	if w.Cause&Deleted == 0 && q.held+w.size > maxHeld {
		w.Object, w.size = nil, 0
	}
	q.held += w.size
}

// release subtracts the content.
func (q *Queue) release(w *Work) {
	q.held -= w.size
	w.size = 0
	signal(q.room)
}

// AddLater queues a trigger after a pause. It returns false for a deleted trigger that would exceed
// the bound of content that waits for a timer.
func (q *Queue) AddLater(at Key, w Work, pause time.Duration) bool {
	var kept int
	if w.Cause&Deleted == 0 {
		w.Object = nil // it will be outdated by then
	} else {
		kept = limit.Held(w.Object, maxHeld)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waitingIn(at, w) != nil {
		w.Tries = 0
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

// AwaitRoom waits until more content can be held, or stop is closed: the last state of a deleted
// trigger cannot be read again.
func (q *Queue) AwaitRoom(stop <-chan struct{}) {
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

func (q *Queue) nudge() { signal(q.wake) }

// signal wakes one receiver, now or at its next wait.
func signal(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Next returns the next work, and false once ctx has ended.
func (q *Queue) Next(ctx context.Context) (Key, Work, bool) {
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
			return Key{}, Work{}, false
		case <-q.wake:
		}
	}
}

// Done marks a trigger as processed.
func (q *Queue) Done(at Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.busy, at)
	if len(q.waiting[at]) > 0 {
		q.ready = append(q.ready, at)
		q.nudge()
	}
}

// Idle reports whether there is neither queued work nor a pending retry.
func (q *Queue) Idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)+len(q.later)+len(q.busy) == 0
}

// HasDeletions reports whether a deleted trigger is queued, in work, or waits for a retry. Other work does
// not keep a position from being saved: a rule may fail lastingly.
func (q *Queue) HasDeletions() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	queued := slices.AppendSeq(slices.Collect(maps.Keys(q.waiting)), maps.Keys(q.busy))
	for in := range q.later {
		queued = append(queued, in.Key)
	}
	return slices.ContainsFunc(queued, func(at Key) bool { return at.Deleted != "" })
}
