package api

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// queue bounds the work of the door.
type queue struct {
	requests  *semaphore.Weighted
	parsed    *semaphore.Weighted
	parsing   chan struct{} // has a place for the one body that is being parsed
	asking    chan struct{} // has a place for each token that is being looked up
	perCaller int

	mu      sync.Mutex
	callers map[string]int // at work or waiting, by user; none with 0
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
		parsing: make(chan struct{}, 1), asking: make(chan struct{}, maxAsking),
		perCaller: l.PerCaller, callers: map[string]int{},
	}
}

// ask takes a place for a token that is to be looked up, if there is one.
func (q *queue) ask() (leave func(), err error) {
	select {
	case q.asking <- struct{}{}:
		return func() { <-q.asking }, nil
	default:
		return nil, problemf(QueueFull, "too many tokens are being looked up; ask again")
	}
}

// enter waits for a turn. The caller calls leave once.
func (q *queue) enter(ctx context.Context, user string) (leave func(), err error) {
	q.mu.Lock()
	if q.callers[user] >= q.perCaller {
		q.mu.Unlock()
		return nil, problemf(TooMany, "%d requests of %s are at work already, which is as many as may be", q.perCaller, user)
	}
	q.callers[user]++
	q.mu.Unlock()
	forget := func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.callers[user]--; q.callers[user] == 0 {
			delete(q.callers, user)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	if q.requests.Acquire(ctx, 1) != nil {
		forget()
		return nil, full()
	}
	return func() { q.requests.Release(1); forget() }, nil
}

func full() error {
	return problemf(QueueFull, "the gateway is at work on as many requests as it may, and none ended in time; ask again")
}

// unfold waits for memory for what is made of a body.
func (q *queue) unfold(ctx context.Context, cost int64) (free func(), err error) {
	if cost > maxParsed {
		return nil, problemf(TooLarge, "the body has too many values to be read; split it, or leave out what runs no image")
	}
	ctx, cancel := context.WithTimeout(ctx, queueTimeout)
	defer cancel()
	if q.parsed.Acquire(ctx, cost) != nil {
		return nil, full()
	}
	return func() { q.parsed.Release(cost) }, nil
}

// parse waits for the turn to parse a body.
func (q *queue) parse(ctx context.Context) (done func(), err error) {
	select {
	case q.parsing <- struct{}{}:
		return func() { <-q.parsing }, nil
	case <-ctx.Done():
		return nil, full()
	}
}
