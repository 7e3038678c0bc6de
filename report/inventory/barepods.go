package inventory

import "container/list"

// barePods are the pods without a workload that admission has seen and no scan has found. A scan
// detects their deletion; without scans it is never observed, and each pod has its own name.
// Denied pods have a separate bound: creating them is free, so they must not evict running ones.
type barePods struct {
	running, refused queue
}

func newBarePods() barePods {
	return barePods{running: newQueue(maxBarePods), refused: newQueue(maxDeniedBarePods)}
}

// add adds a pod, and returns the pod to evict for it; false for none.
func (b *barePods) add(at place, running bool) (oldest place, full bool) {
	if running {
		b.refused.drop(at)
		return b.running.add(at)
	}
	b.running.drop(at)
	return b.refused.add(at)
}

// drop removes a pod that a scan has found, or that was deleted.
func (b *barePods) drop(at place) {
	b.running.drop(at)
	b.refused.drop(at)
}

// queue holds places in the order of their arrival.
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
