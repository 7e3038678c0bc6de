package follow

import (
	"context"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/scan"
)

// item is a queued object.
type item struct {
	kind            scan.Kind
	namespace, name string
}

// queue is a bounded queue without duplicates.
type queue struct {
	most  int
	ready chan struct{} // has an element while the queue may have items

	mu      sync.Mutex
	waiting []item
	known   map[item]bool
}

func newQueue(most int) *queue {
	return &queue{most: most, ready: make(chan struct{}, 1), known: map[item]bool{}}
}

// put queues an object, and returns false if the queue is full and does not contain it.
func (q *queue) put(next item) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.known[next] {
		return true
	}
	if len(q.waiting) >= q.most {
		return false
	}
	q.waiting, q.known[next] = append(q.waiting, next), true
	q.wake()
	return true
}

// wake wakes one more worker; the caller holds the lock.
func (q *queue) wake() {
	select {
	case q.ready <- struct{}{}:
	default: // one is already waking, and wakes the next
	}
}

// take waits for an object, and returns false if ctx ends first.
func (q *queue) take(ctx context.Context) (item, bool) {
	for {
		select {
		case <-ctx.Done():
			return item{}, false
		case <-q.ready:
		}
		if next, ok := q.first(); ok {
			return next, true
		}
	}
}

func (q *queue) first() (next item, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return item{}, false
	}
	next = q.waiting[0]
	q.waiting[0] = item{}
	q.waiting = q.waiting[1:]
	delete(q.known, next)
	if len(q.waiting) > 0 {
		q.wake()
	}
	return next, true
}

// drop removes the objects of a kind, and returns their number.
func (q *queue) drop(kind scan.Kind) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(q.waiting)
	q.waiting = slices.DeleteFunc(q.waiting, func(i item) bool {
		if i.kind == kind {
			delete(q.known, i)
		}
		return i.kind == kind
	})
	return before - len(q.waiting)
}

func (q *queue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}
