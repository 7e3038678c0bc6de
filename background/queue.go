package background

import (
	"context"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/generating/record"
)

// key names a trigger, whatever version it is read in.
type key struct{ group, kind, namespace, name string }

// cause is why a trigger is looked at; several may come together.
type cause uint8

const (
	came    cause = 1 << iota // it was made
	changed                   // it changed
	listed                    // it is there, and nobody knows since when
	restore                   // something that is there because of it changed or went
)

// work is a trigger that is to be looked at.
type work struct {
	trigger record.Trigger
	object  map[string]any // as it was last seen; nil: it is to be read
	size    int            // of the object, while it waits
	cause   cause
	// rules are those that came or changed, so that triggers which are there count.
	rules map[ruleID]bool
	tries int
}

// join adds what a later one says.
func (w *work) join(later work) {
	w.trigger, w.object, w.cause = later.trigger, later.object, w.cause|later.cause
	for id := range later.rules {
		if w.rules == nil {
			w.rules = map[ruleID]bool{}
		}
		w.rules[id] = true
	}
	if later.tries == 0 {
		w.tries = 0 // there is something new
	}
}

// reading names a trigger as it is read in one version.
type reading struct {
	key
	apiVersion string
}

func readingOf(at key, w work) reading { return reading{at, w.trigger.APIVersion} }

// queue hands out triggers, each to one worker at a time. What comes while one is
// worked on waits until that is done, as one for each version that it is read in: a
// rule may speak of one of them alone.
type queue struct {
	wake chan struct{}

	mu      sync.Mutex
	ready   []key
	waiting map[key][]*work
	later   map[reading]*work // not before a timer
	busy    map[key]bool
	held    int
}

func newQueue() *queue {
	return &queue{wake: make(chan struct{}, 1), waiting: map[key][]*work{}, later: map[reading]*work{}, busy: map[key]bool{}}
}

// add has a trigger looked at soon.
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

// waitingIn returns what waits of a trigger in the version of a work; nil for nothing.
func (q *queue) waitingIn(at key, w work) *work {
	for _, have := range q.waiting[at] {
		if have.trigger.APIVersion == w.trigger.APIVersion {
			return have
		}
	}
	return nil
}

// hold counts the content of what waits, and drops what is too much.
func (q *queue) hold(w *work) {
	if w.object == nil {
		return
	}
	if w.size = limit.Held(w.object, maxHeld); q.held+w.size > maxHeld {
		w.object, w.size = nil, 0
	}
	q.held += w.size
}

// release counts it no more.
func (q *queue) release(w *work) {
	q.held -= w.size
	w.size = 0
}

// addLater has a trigger looked at after a pause.
func (q *queue) addLater(at key, w work, pause time.Duration) {
	w.object = nil // it will be another one by then
	q.mu.Lock()
	if q.waitingIn(at, w) != nil {
		w.tries = 0
		q.put(at, w)
		q.mu.Unlock()
		return
	}
	delayed, in := &w, readingOf(at, w)
	q.later[in] = delayed
	q.mu.Unlock()
	time.AfterFunc(pause, func() { // after the end it puts something where nobody looks
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.later[in] == delayed {
			delete(q.later, in)
			q.put(at, *delayed)
		}
	})
}

func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// next returns what is to be done, or false once ctx has ended.
func (q *queue) next(ctx context.Context) (key, work, bool) {
	for {
		q.mu.Lock()
		if len(q.ready) > 0 && ctx.Err() == nil {
			at := q.ready[0]
			q.ready = q.ready[1:]
			w := q.waiting[at][0]
			if q.waiting[at] = q.waiting[at][1:]; len(q.waiting[at]) == 0 {
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

// done says that a trigger is not worked on any more.
func (q *queue) done(at key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.busy, at)
	if len(q.waiting[at]) > 0 {
		q.ready = append(q.ready, at)
		q.nudge()
	}
}

// idle reports whether nothing is to be done, nor waits until it is tried again.
func (q *queue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)+len(q.later)+len(q.busy) == 0
}
