package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/quaymaster/quaymaster/internal/fairqueue"
)

// Queue limits the work of the endpoints that share it, and shares it fairly between namespaces: a
// namespace under load leaves capacity to those without requests. It is safe for concurrent use.
type Queue struct {
	requests *fairqueue.Queue
	parsed   *fairqueue.Queue
	bodies   *fairqueue.Queue // bytes of bodies with a known namespace
	bytes    *fairqueue.Queue // bytes of all bodies, by remote address
	most     int64            // limit of bytes
	reserved atomic.Int64     // reserved bytes
}

// QueueBounds limit concurrent work. Zero fields keep their defaults.
type QueueBounds struct {
	// Requests bounds concurrent evaluations: 256. A single namespace gets at most three quarters
	// of them.
	Requests int64
	// Bytes bounds the bodies in memory from one address, and separately the parsed ones: 32 MiB
	// each. Bodies of all addresses take at most a third more. It must be at least MaxBody, so that
	// every valid request can be read.
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
		return nil, fmt.Errorf("queue: %d requests: must be at least 1", bounds.Requests)
	}
	if bounds.Bytes < MaxBody {
		return nil, fmt.Errorf("queue: %d bytes: must be at least %d, the size of one request (MaxBody)", bounds.Bytes, MaxBody)
	}
	requests, err := fairqueue.New(fairqueue.Bounds{Total: bounds.Requests})
	if err != nil {
		return nil, err
	}
	parsed, err := fairqueue.New(fairqueue.Bounds{Total: max(bounds.Bytes, maxParsed)})
	if err != nil {
		return nil, err
	}
	bodies, err := fairqueue.New(fairqueue.Bounds{Total: bounds.Bytes})
	if err != nil {
		return nil, err
	}
	// A single address gets at most three quarters of it.
	arriving, err := fairqueue.New(fairqueue.Bounds{Total: bounds.Bytes + bounds.Bytes/3 + 1})
	if err != nil {
		return nil, err
	}
	return &Queue{requests: requests, parsed: parsed, bodies: bodies, bytes: arriving, most: bounds.Bytes}, nil
}

// Working returns the number of requests in evaluation.
func (q *Queue) Working() int64 { return q.requests.Held() }

// Waiting returns the number of requests that wait for a slot or for memory.
func (q *Queue) Waiting() int64 {
	return q.bytes.Waiters(fairqueue.Full) + q.bytes.Waiters(fairqueue.Share) + q.requests.Waiters(fairqueue.Full) +
		q.parsed.Waiters(fairqueue.Full) + q.WaitingForShare()
}

// WaitingForShare returns the number of waiting requests of namespaces with an exhausted share
// while capacity is free.
func (q *Queue) WaitingForShare() int64 {
	return q.requests.Waiters(fairqueue.Share) + q.parsed.Waiters(fairqueue.Share)
}

var (
	errQueueFull = errors.New("the gateway is overloaded: no capacity in time")
	errShare     = fmt.Errorf("the namespace has reached its share of the gateway's concurrent requests, with no capacity in time: %w",
		&fairqueue.WaitError{Reason: fairqueue.Share})
)

// Enter waits for a slot for a request of a namespace, "" for none, for at most seven eighths of
// the time until ctx's deadline. The caller calls leave once.
func (q *Queue) Enter(ctx context.Context, namespace string) (leave func(), err error) {
	return q.wait(ctx, q.requests, namespace, 1)
}

// Reserve waits until ctx ends for memory for a body of this size. The memory is accounted to the
// client's address, as in http.Request. A client that sends endless bodies therefore cannot block
// the API server, which has another address. The caller calls release once.
func (q *Queue) Reserve(ctx context.Context, from string, size int64) (release func(), err error) {
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		host = from
	}
	hold, err := q.bytes.Enter(ctx, fairqueue.Claim{Tenant: host, Seats: size})
	if err != nil {
		return nil, errQueueFull
	}
	q.reserved.Add(size)
	return func() {
		q.reserved.Add(-size)
		hold.Leave()
	}, nil
}

// wait waits for capacity. The namespace of a body is known only after it was read. Therefore a
// namespace with an exhausted share waits only while at least half of the memory for bodies is
// free; the other half is for the others.
func (q *Queue) wait(ctx context.Context, of *fairqueue.Queue, namespace string, n int64) (leave func(), err error) {
	claim := fairqueue.Claim{Tenant: namespace, Seats: n}
	hold, why, ok := of.TryEnter(claim)
	if !ok {
		if why == fairqueue.Share && q.reserved.Load() > q.most/2 {
			return nil, errShare
		}
		waiting, cancel := slotDeadline(ctx)
		defer cancel()
		hold, err = of.Enter(waiting, claim)
		if err != nil {
			if waited, ok := errors.AsType[*fairqueue.WaitError](err); ok && waited.Reason == fairqueue.Share {
				return nil, errShare
			}
			return nil, errQueueFull
		}
	}
	return hold.Leave, nil
}

// slotDeadline returns a context that ends when an eighth of the time is left. A later slot would leave
// no time for the evaluation, and the response would not report the real cause.
func slotDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/8))
}

// errTooComplex means that an object has too many values.
var errTooComplex = errors.New("the object has too many values; split it, or remove repeated parts")

// reserveParsed reserves memory for parsed objects, after the memory for the body. A namespace whose
// bodies use up its share of the memory, in evaluation or waiting, is rejected at once: otherwise
// it would block the bodies of all others.
func (q *Queue) reserveParsed(ctx context.Context, namespace string, objects ...[]byte) (release func(), err error) {
	var cost, size int64
	for _, object := range objects {
		cost += costOf(object)
		size += int64(len(object))
	}
	if cost > maxParsed {
		return nil, errTooComplex
	}
	body, why, ok := q.bodies.TryEnter(fairqueue.Claim{Tenant: namespace, Seats: size})
	switch {
	case !ok && why == fairqueue.Share:
		return nil, errShare
	case !ok:
		return nil, errQueueFull
	}
	leave, err := q.wait(ctx, q.parsed, namespace, cost)
	if err != nil {
		body.Leave()
		return nil, err
	}
	return func() {
		leave()
		body.Leave()
	}, nil
}

// costOf estimates the memory of a fully parsed JSON text. Every value has an index entry and is an
// interface, and a map allocates eight members at once. It is an upper bound; braces and commas
// inside of texts increase it.
func costOf(object []byte) int64 {
	const ofObject, ofValue = 384, 80
	return int64(len(object)) + ofObject*int64(bytes.Count(object, []byte{'{'})) +
		ofValue*int64(bytes.Count(object, []byte{','})+bytes.Count(object, []byte{'['}))
}
