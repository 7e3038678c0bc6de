package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/quaymaster/quaymaster/internal/fair"
)

// Queue bounds the work of the doors that share it, and shares it between namespaces:
// one that has much at work leaves some to those that have none. It is safe for
// concurrent use.
type Queue struct {
	requests *fair.Places
	parsed   *fair.Places
	bodies   *fair.Places // bytes of those whose namespace is known
	bytes    *fair.Places // those of bodies, by the address that they come from
	most     int64        // bytes
	reserved atomic.Int64 // of them
}

// QueueBounds say how much may be at work at once; zero fields keep their
// defaults.
type QueueBounds struct {
	// Requests are those that are being decided: 256. A namespace alone gets three
	// quarters of them.
	Requests int64
	// Bytes are the bodies in memory that come from one address, and again what is made
	// of them: 32 MiB each. Bodies from all addresses are a third more at most. At least
	// MaxBody, or some request could never be read.
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
	requests, err := fair.New(fair.Bounds{Total: bounds.Requests})
	if err != nil {
		return nil, err
	}
	parsed, err := fair.New(fair.Bounds{Total: max(bounds.Bytes, maxParsed)})
	if err != nil {
		return nil, err
	}
	bodies, err := fair.New(fair.Bounds{Total: bounds.Bytes})
	if err != nil {
		return nil, err
	}
	// One address alone may have three quarters of it.
	arriving, err := fair.New(fair.Bounds{Total: bounds.Bytes + bounds.Bytes/3 + 1})
	if err != nil {
		return nil, err
	}
	return &Queue{requests: requests, parsed: parsed, bodies: bodies, bytes: arriving, most: bounds.Bytes}, nil
}

// Working returns how many requests are being decided.
func (q *Queue) Working() int64 { return q.requests.Held() }

// Waiting returns how many requests wait for their turn or for memory.
func (q *Queue) Waiting() int64 {
	return q.bytes.Waiting(fair.Full) + q.bytes.Waiting(fair.Share) + q.requests.Waiting(fair.Full) + q.parsed.Waiting(fair.Full) + q.WaitingForShare()
}

// WaitingForShare returns how many of them wait since their namespace has its share at
// work, though there is room for others.
func (q *Queue) WaitingForShare() int64 {
	return q.requests.Waiting(fair.Share) + q.parsed.Waiting(fair.Share)
}

var (
	errQueueFull = errors.New("the gateway is at work on as many requests as it may, and none ended in time")
	errShare     = fmt.Errorf("the gateway is at work on as many requests of this namespace as leaves room for those of others, and none ended in time: %w", &fair.WaitError{Reason: fair.Share})
)

// causeOf says why there was no turn, or no memory.
func causeOf(err error) Cause {
	if errors.Is(err, errShare) {
		return ShareTaken
	}
	return QueueFull
}

// Enter waits for a turn for a request of a namespace, "" for none, for at most seven eighths
// of the time that ctx leaves. The caller calls leave once.
func (q *Queue) Enter(ctx context.Context, namespace string) (leave func(), err error) {
	return q.wait(ctx, q.requests, namespace, 1)
}

// Reserve waits for memory for a body of so many bytes until ctx ends, in the name of the
// address that it comes from, as http.Request has it: whoever may reach a door may send
// bodies that never end, and an API server comes from elsewhere. The caller calls release
// once.
func (q *Queue) Reserve(ctx context.Context, from string, size int64) (release func(), err error) {
	host, _, err := net.SplitHostPort(from)
	if err != nil {
		host = from
	}
	hold, err := q.bytes.Enter(ctx, fair.Claim{Tenant: host, Places: size})
	if err != nil {
		return nil, errQueueFull
	}
	q.reserved.Add(size)
	return func() {
		q.reserved.Add(-size)
		hold.Leave()
	}, nil
}

// wait waits for places. Whose body is it that is read is known only afterwards: so who
// has its share waits while at least half of the memory for bodies is free, and leaves
// the other half to those whose turn it is.
func (q *Queue) wait(ctx context.Context, of *fair.Places, namespace string, n int64) (leave func(), err error) {
	claim := fair.Claim{Tenant: namespace, Places: n}
	hold, why, ok := of.TryEnter(claim)
	if !ok {
		if why == fair.Share && q.reserved.Load() > q.most/2 {
			return nil, errShare
		}
		waiting, cancel := turnBy(ctx)
		defer cancel()
		if hold, err = of.Enter(waiting, claim); err != nil {
			if waited, ok := errors.AsType[*fair.WaitError](err); ok && waited.Reason == fair.Share {
				return nil, errShare
			}
			return nil, errQueueFull
		}
	}
	return hold.Leave, nil
}

// turnBy ends when an eighth of the time is left: whose turn comes later would only be told
// that the time was over, and not what took it.
func turnBy(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/8))
}

// errTooComplex says that an object has more in it than anybody needs.
var errTooComplex = errors.New("the object has too many values to be read; split it, or leave out what repeats")

// unfold waits for memory for what is made of objects that are read. It is asked
// for after that of the body, and by nobody who waits for a body: a namespace whose bodies
// take its share of their memory, at work or in wait for whatever there is too little of, is
// told so at once, or nobody else's could be read.
func (q *Queue) unfold(ctx context.Context, namespace string, objects ...[]byte) (release func(), err error) {
	var cost, size int64
	for _, object := range objects {
		cost += costOf(object)
		size += int64(len(object))
	}
	if cost > maxParsed {
		return nil, errTooComplex
	}
	body, why, ok := q.bodies.TryEnter(fair.Claim{Tenant: namespace, Places: size})
	switch {
	case !ok && why == fair.Share:
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

// costOf estimates what JSON takes once it is read and somebody reads all of it:
// every value has a place in the index, and is an interface; a map has room for
// eight members from the first on. It is no less than that for any text, and some
// more where texts hold braces and commas.
func costOf(object []byte) int64 {
	const ofObject, ofValue = 384, 80
	return int64(len(object)) + ofObject*int64(bytes.Count(object, []byte{'{'})) +
		ofValue*int64(bytes.Count(object, []byte{','})+bytes.Count(object, []byte{'['}))
}
