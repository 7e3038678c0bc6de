package publish

import (
	"container/list"
	"sync"

	"github.com/quaymaster/quaymaster/report"
)

// queue holds what was decided until it is put into the words of reports. It is
// bounded: when it is full, what was decided about an object before something newer
// that waits as well goes first, the oldest before all others.
type queue struct {
	most int
	room *report.Room
	wake chan struct{}

	mu      sync.Mutex
	waiting list.List // of *waiting, the oldest first
	last    map[object]*list.Element
	// outdated are those that something newer about the same object waits behind.
	outdated list.List // of *list.Element
}

// object names an object as a request does, which costs no look into its content.
type object struct{ group, kind, namespace, name string }

type waiting struct {
	of      object
	decided report.Decided
	// outdated is its place among those; nil while nothing newer waits.
	outdated *list.Element
}

func newQueue(most int) *queue {
	return &queue{most: most, room: report.NewRoom(maxHeld), wake: make(chan struct{}, 1), last: map[object]*list.Element{}}
}

// add takes something in. It returns what it did for room: nothing, forget something
// that a newer one is about, or refuse what is given.
func (q *queue) add(d report.Decided) (outdated, refused bool) {
	of := objectOf(d)
	q.mu.Lock()
	defer q.mu.Unlock()
	if before := q.last[of]; before != nil {
		w := before.Value.(*waiting) //nolint:forcetypeassert // nothing else is in it
		w.outdated = q.outdated.PushBack(before)
	}
	for q.waiting.Len() >= q.most || !q.room.Enter(d) {
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

// next takes the oldest out; false: there is none.
func (q *queue) next() (report.Decided, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	oldest := q.waiting.Front()
	if oldest == nil {
		return report.Decided{}, false
	}
	return q.remove(oldest).decided, true
}

// remove takes one out; the caller holds the lock.
func (q *queue) remove(e *list.Element) *waiting {
	w := q.waiting.Remove(e).(*waiting) //nolint:forcetypeassert // nothing else is in it
	q.room.Leave(w.decided)
	if w.outdated != nil {
		q.outdated.Remove(w.outdated)
	}
	if q.last[w.of] == e {
		delete(q.last, w.of)
	}
	return w
}

// size is how many wait.
func (q *queue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.Len()
}

// objectOf names the object by what its request says.
func objectOf(d report.Decided) object {
	s := d.Outcome.Subject
	return object{group: s.Group, kind: s.Kind, namespace: s.Namespace, name: s.Name}
}
