package checker

import (
	"sync"
	"time"
)

// Record holds the answers, and the requests without one. The zero value is empty.
type Record struct {
	mu      sync.Mutex
	answers []Answer
	waiting map[string]time.Time // pods that are wanted, since when
}

// Begin notes that a pod is wanted.
func (l *Record) Begin(a *Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting == nil {
		l.waiting = map[string]time.Time{}
	}
	l.waiting[a.Pod] = a.Start
}

// Add notes what became of it.
func (l *Record) Add(a Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waiting, a.Pod)
	l.answers = append(l.answers, a)
}

// All returns the answers so far.
func (l *Record) All() []Answer {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answers[:len(l.answers):len(l.answers)]
}

// Forget drops the answers so far.
func (l *Record) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers = nil
}

// State sums up the answers since a moment.
type State struct {
	First   time.Time // when the first signed pod came in
	LastBad time.Time // when the last answer came that is not as it should be; else the moment
	Bad     *Answer
	Good    int           // answers as they should be since then
	Waiting time.Duration // how long the oldest wish has waited
}

// Look sums up the answers since a moment, and the requests since then that were admitted.
// Answers are in the order in which they came.
func (l *Record) Look(since time.Time) State {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := State{First: since, LastBad: since}
	seen := false
	for i := range l.answers {
		a := &l.answers[i]
		switch {
		case a.End.Before(since):
		case !a.IsGood():
			now.LastBad, now.Bad, now.Good = a.End, a, 0
		case !a.Start.Before(since):
			now.Good++
			if a.Truth == Signed && !seen {
				now.First, seen = a.End, true
			}
		}
	}
	for _, start := range l.waiting {
		now.Waiting = max(now.Waiting, time.Since(start))
	}
	return now
}
