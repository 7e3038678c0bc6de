package inventory

import "container/list"

// lone are the places of pods of no workload that admission told of and no scan has found,
// in the order in which they came. Where a scan runs, it tells when one is gone; elsewhere
// nobody does, and each has a name of its own.
type lone struct {
	order *list.List // of place
	at    map[place]*list.Element
}

func newLone() lone { return lone{order: list.New(), at: map[place]*list.Element{}} }

// add notes a pod, and returns the one that must go for it; false for none.
func (l *lone) add(at place) (oldest place, full bool) {
	if l.at[at] != nil {
		return place{}, false
	}
	l.at[at] = l.order.PushBack(at)
	if l.order.Len() <= maxLone {
		return place{}, false
	}
	oldest, full = l.order.Front().Value.(place)
	return oldest, full
}

// drop forgets a pod that a scan has found, or that is gone.
func (l *lone) drop(at place) {
	if element := l.at[at]; element != nil {
		l.order.Remove(element)
		delete(l.at, at)
	}
}
