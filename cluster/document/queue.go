package document

import (
	"context"
	"slices"
	"sync"
)

// queue joins changes, and delivers them as soon as the Consumer is free: a single change is not
// delayed, and many arrive together.
type queue struct {
	consumer Consumer
	wake     chan struct{}
	ready    chan struct{}

	mu      sync.Mutex
	opened  bool
	pending map[Key]*Document // nil: deleted
	told    map[Key]bool      // documents delivered to the Consumer
}

func newQueue(c Consumer) *queue {
	return &queue{
		consumer: c, wake: make(chan struct{}, 1), ready: make(chan struct{}),
		pending: make(map[Key]*Document), told: make(map[Key]bool),
	}
}

func (q *queue) add(changes map[Key]*Document) {
	if len(changes) == 0 {
		return
	}
	q.mu.Lock()
	for key, d := range changes {
		q.pending[key] = d
	}
	q.mu.Unlock()
	q.nudge()
}

// open releases the first batch; earlier changes are delivered together.
func (q *queue) open() {
	q.mu.Lock()
	first := !q.opened
	q.opened = true
	q.mu.Unlock()
	if first {
		q.nudge()
	}
}

func (q *queue) nudge() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) run(ctx context.Context) {
	first := true
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
		}
		upserts, deletes, opened := q.take()
		if !opened || !first && len(upserts)+len(deletes) == 0 {
			continue
		}
		q.consumer.Changed(ctx, upserts, deletes)
		if first {
			first = false
			close(q.ready)
		}
	}
}

// take returns the changes to deliver, or false before open.
func (q *queue) take() (upserts []Document, deletes []Key, opened bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.opened {
		return nil, nil, false
	}
	for key, d := range q.pending {
		switch {
		case d != nil:
			upserts = append(upserts, *d)
			q.told[key] = true
		case q.told[key]: // otherwise it was added and deleted between two batches
			deletes = append(deletes, key)
			delete(q.told, key)
		}
	}
	clear(q.pending)
	slices.SortFunc(upserts, func(a, b Document) int { return compareKeys(a.Key, b.Key) })
	slices.SortFunc(deletes, compareKeys)
	return upserts, deletes, true
}
