package api

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// queue limits the concurrent work of the endpoint.
type queue struct {
	requests  *semaphore.Weighted
	parsed    *semaphore.Weighted
	parsing   chan struct{} // has capacity 1: one body is parsed at a time
	lookups   chan struct{} // holds one element per token lookup
	perCaller int

	mu      sync.Mutex
	callers map[string]int // requests in progress or waiting, by user; zero counts are removed
}

func newQueue(l Limits) *queue {
	if l.Requests == 0 {
		l.Requests = DefaultRequests
	}
	if l.PerCaller == 0 {
		l.PerCaller = DefaultPerCaller
	}
	return &queue{
		requests: semaphore.NewWeighted(int64(l.Requests)), parsed: semaphore.NewWeighted(allParsed),
		parsing: make(chan struct{}, 1), lookups: make(chan struct{}, maxLookups),
		perCaller: l.PerCaller, callers: map[string]int{},
	}
}

// lookUp reserves a token lookup, if the limit allows it.
func (q *queue) lookUp() (leave func(), err error) {
	select {
	case q.lookups <- struct{}{}:
		return func() { <-q.lookups }, nil
	default:
		return nil, problemf(QueueFull, "too many concurrent token lookups; retry")
	}
}

// enter waits for a slot. The caller calls leave once.
func (q *queue) enter(ctx context.Context, user string) (leave func(), err error) {
	q.mu.Lock()
	if q.callers[user] >= q.perCaller {
		q.mu.Unlock()
		return nil, problemf(TooMany, "limit of %d concurrent requests reached for %s", q.perCaller, user)
	}
	q.callers[user]++
	q.mu.Unlock()
	release := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.callers[user]--
		if q.callers[user] == 0 {
			delete(q.callers, user)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	if q.requests.Acquire(ctx, 1) != nil {
		release()
		return nil, full()
	}
	return func() { q.requests.Release(1); release() }, nil
}

func full() error {
	return problemf(QueueFull, "the gateway is overloaded: no capacity in time; retry")
}

// reserve reserves memory for the parsed body.
func (q *queue) reserve(ctx context.Context, cost int64) (free func(), err error) {
	if cost > maxParsed {
		return nil, problemf(TooLarge, "the body has too many values; split it, or remove objects without images")
	}
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	if q.parsed.Acquire(ctx, cost) != nil {
		return nil, full()
	}
	return func() { q.parsed.Release(cost) }, nil
}

// parse waits until the body can be parsed.
func (q *queue) parse(ctx context.Context) (done func(), err error) {
	select {
	case q.parsing <- struct{}{}:
		return func() { <-q.parsing }, nil
	case <-ctx.Done():
		return nil, full()
	}
}
