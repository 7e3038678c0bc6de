package queue

import "container/list"

// Queue holds keys in the order of their arrival. It is not safe for concurrent use. Create one
// with New.
type Queue[K comparable] struct {
	most  int
	order *list.List // of K
	at    map[K]*list.Element
}

// New creates a queue with a bound.
func New[K comparable](most int) Queue[K] {
	return Queue[K]{most: most, order: list.New(), at: map[K]*list.Element{}}
}

// Add adds a key, and returns the key to evict for it; false for none.
func (q *Queue[K]) Add(key K) (oldest K, full bool) {
	if q.at[key] != nil {
		return oldest, false
	}
	q.at[key] = q.order.PushBack(key)
	if q.order.Len() <= q.most {
		return oldest, false
	}
	oldest, full = q.order.Front().Value.(K)
	return oldest, full
}

// Drop removes a key.
func (q *Queue[K]) Drop(key K) {
	if element := q.at[key]; element != nil {
		q.order.Remove(element)
		delete(q.at, key)
	}
}
