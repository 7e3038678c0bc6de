package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Queue bounds the work of the doors that share it. It is safe for concurrent
// use.
type Queue struct {
	requests *semaphore.Weighted
	bytes    *semaphore.Weighted
	parsed   *semaphore.Weighted
	working  atomic.Int64
	waiting  atomic.Int64
}

// QueueBounds say how much may be at work at once; zero fields keep their
// defaults.
type QueueBounds struct {
	// Requests are those that are being decided: 256.
	Requests int64
	// Bytes are the bodies in memory, and again what is made of them: 32 MiB each.
	// At least MaxBody, or some request could never be read.
	Bytes int64
}

// NewQueue makes a Queue.
func NewQueue(bounds QueueBounds) (*Queue, error) {
	if bounds.Requests == 0 {
		bounds.Requests = 256
	}
	if bounds.Bytes == 0 {
		bounds.Bytes = 32 << 20
	}
	if bounds.Requests < 1 {
		return nil, fmt.Errorf("queue: %d requests: want at least 1", bounds.Requests)
	}
	if bounds.Bytes < MaxBody {
		return nil, fmt.Errorf("queue: %d bytes: want at least %d, the size of one request (MaxBody)", bounds.Bytes, MaxBody)
	}
	return &Queue{
		requests: semaphore.NewWeighted(bounds.Requests),
		bytes:    semaphore.NewWeighted(bounds.Bytes), parsed: semaphore.NewWeighted(max(bounds.Bytes, maxParsed)),
	}, nil
}

// Working returns how many requests are being decided.
func (q *Queue) Working() int64 { return q.working.Load() }

// Waiting returns how many requests wait for their turn.
func (q *Queue) Waiting() int64 { return q.waiting.Load() }

var errQueueFull = errors.New("the gateway is at work on as many requests as it may, and none ended in time")

// Enter waits for a turn until ctx ends. The caller calls leave once.
func (q *Queue) Enter(ctx context.Context) (leave func(), err error) {
	if err := q.acquire(ctx, q.requests, 1); err != nil {
		return nil, err
	}
	q.working.Add(1)
	return func() {
		q.working.Add(-1)
		q.requests.Release(1)
	}, nil
}

// Reserve waits for memory for a body of so many bytes until ctx ends. The caller
// calls release once.
func (q *Queue) Reserve(ctx context.Context, size int64) (release func(), err error) {
	if err := q.acquire(ctx, q.bytes, size); err != nil {
		return nil, err
	}
	return func() { q.bytes.Release(size) }, nil
}

// errTooComplex says that an object has more in it than anybody needs.
var errTooComplex = errors.New("the object has too many values to be read; split it, or leave out what repeats")

// unfold waits for memory for what is made of objects that are read. It is asked
// for after that of the body, and by nobody who waits for a body.
func (q *Queue) unfold(ctx context.Context, objects ...[]byte) (release func(), err error) {
	var cost int64
	for _, object := range objects {
		cost += costOf(object)
	}
	if cost > maxParsed {
		return nil, errTooComplex
	}
	if err := q.acquire(ctx, q.parsed, cost); err != nil {
		return nil, err
	}
	return func() { q.parsed.Release(cost) }, nil
}

// costOf estimates what JSON takes once it is read and somebody reads all of it:
// every value has a place in the index, and is an interface; a map has room for
// eight members from the first on. It is no less than that for any text, and some
// more where texts hold braces and commas.
func costOf(object []byte) int64 {
	const ofObject, ofValue = 384, 80
	return int64(len(object)) + ofObject*int64(bytes.Count(object, []byte{'{'})) +
		ofValue*int64(bytes.Count(object, []byte{','})+bytes.Count(object, []byte{'['}))
}

func (q *Queue) acquire(ctx context.Context, of *semaphore.Weighted, n int64) error {
	if of.TryAcquire(n) {
		return nil
	}
	q.waiting.Add(1)
	defer q.waiting.Add(-1)
	if err := of.Acquire(ctx, n); err != nil {
		return errQueueFull
	}
	return nil
}
