package inventory

import "container/list"

// lone are the places of pods of no workload that admission told of and no scan has found.
// Where a scan runs, it tells when one is gone; elsewhere nobody does, and each has a name
// of its own. Those that were refused are apart: they cost whoever sends them nothing, and
// so must not drive out what runs.
type lone struct {
	running, refused queue
}

func newLone() lone { return lone{running: newQueue(maxLone), refused: newQueue(maxLoneRefused)} }

// add notes a pod, and returns the one that must go for it; false for none.
func (l *lone) add(at place, running bool) (oldest place, full bool) {
	if running {
		l.refused.drop(at)
		return l.running.add(at)
	}
	l.running.drop(at)
	return l.refused.add(at)
}

// drop forgets a pod that a scan has found, or that is gone.
func (l *lone) drop(at place) {
	l.running.drop(at)
	l.refused.drop(at)
}

// queue are places in the order in which they came.
type queue struct {
	most  int
	order *list.List // of place
	at    map[place]*list.Element
}

func newQueue(most int) queue {
	return queue{most: most, order: list.New(), at: map[place]*list.Element{}}
}

func (q *queue) add(at place) (oldest place, full bool) {
	if q.at[at] != nil {
		return place{}, false
	}
	q.at[at] = q.order.PushBack(at)
	if q.order.Len() <= q.most {
		return place{}, false
	}
	oldest, full = q.order.Front().Value.(place)
	return oldest, full
}

func (q *queue) drop(at place) {
	if element := q.at[at]; element != nil {
		q.order.Remove(element)
		delete(q.at, at)
	}
}
