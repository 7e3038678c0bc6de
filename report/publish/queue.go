package publish

import (
	"container/list"
	"sync"

	"github.com/quaymaster/quaymaster/report"
)

// queue holds decisions until they are converted to results. It is bounded. When it is full, it
// evicts a decision that a newer one on the same object follows, the oldest of those first.
type queue struct {
	most   int
	memory *report.MemoryLimit
	wake   chan struct{}

	mu      sync.Mutex
	waiting list.List // of *waiting, the oldest first
	last    map[object]*list.Element
	// outdated are the decisions that a newer one on the same object follows.
	outdated list.List // of *list.Element
}

// object identifies an object by its request, without decoding the object.
type object struct{ group, kind, namespace, name string }

type waiting struct {
	of      object
	decided report.Decided
	// outdated is its element in that list; nil while there is no newer one.
	outdated *list.Element
}

func newQueue(most int) *queue {
	return &queue{most: most, memory: report.NewMemoryLimit(maxHeld), wake: make(chan struct{}, 1), last: map[object]*list.Element{}}
}

// add adds a decision. If the queue is full, it evicts an outdated one, or refuses the new one.
func (q *queue) add(d report.Decided) (outdated, refused bool) {
	of := objectOf(d)
	q.mu.Lock()
	defer q.mu.Unlock()
	if before := q.last[of]; before != nil {
		w := before.Value.(*waiting) //nolint:forcetypeassert // nothing else is in it
		w.outdated = q.outdated.PushBack(before)
	}
	for q.waiting.Len() >= q.most || !q.memory.Reserve(d) {
		oldest := q.outdated.Front()
		if oldest == nil {
			return outdated, true
		}
		q.remove(oldest.Value.(*list.Element)) //nolint:forcetypeassert // nothing else is in it
		outdated = true
	}
	q.last[of] = q.waiting.PushBack(&waiting{of: of, decided: d})
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return outdated, false
}

// next removes the oldest decision, and returns false if there is none.
func (q *queue) next() (report.Decided, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := q.waiting.Front()
	if oldest == nil {
		return report.Decided{}, false
	}
	return q.remove(oldest).decided, true
}

// remove removes one; the caller holds the lock.
func (q *queue) remove(e *list.Element) *waiting {
	w := q.waiting.Remove(e).(*waiting) //nolint:forcetypeassert // nothing else is in it
	q.memory.Release(w.decided)
	if w.outdated != nil {
		q.outdated.Remove(w.outdated)
	}
	if q.last[w.of] == e {
		delete(q.last, w.of)
	}
	return w
}

// size is the length of the queue.
func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Len()
}

// objectOf identifies the object by its request.
func objectOf(d report.Decided) object {
	s := d.Outcome.Subject
	return object{group: s.Group, kind: s.Kind, namespace: s.Namespace, name: s.Name}
}
