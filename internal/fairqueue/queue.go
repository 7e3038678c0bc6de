package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

const (
	// share is the maximum ratio of a tenant's or host's seats to the remaining free seats.
	// hostShare is the ratio for a tenant and the seats of one host, of which there are few.
	share     = 3
	hostShare = 7
	// maxIdle bounds the idle flows without seats and claims. Each has some 200 bytes, and
	// making one costs more than a look-up.
	maxIdle = 1024
)

// Bounds set the number of seats.
type Bounds struct {
	// Total is the number of seats: at least 1.
	Total int64
	// PerHost is the maximum for one host; 0 means no separate limit.
	PerHost int64
}

// Claim is a request for seats.
type Claim struct {
	// Tenant of the work; "" is a tenant, too.
	Tenant string
	// Host of the work; "" for none.
	Host string
	// Seats requested, all or none; 0 means 1.
	Seats int64
	// Alone: there are no other tenants, so no seats are reserved for them, nor for other hosts.
	Alone bool
}

// Reason is the cause of waiting.
type Reason int

// The reasons.
const (
	// Full: all seats are taken.
	Full Reason = iota
	// HostFull: the host has all of its seats, or its share of all seats.
	HostFull
	// Share: the tenant has its share, and the rest is reserved for others.
	Share
	reasons
)

// Queue is a set of shared seats. Make it with New. It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	bounds  Bounds
	held    int64
	arrived uint64 // numbers the waiting claims
	tenants map[string]*usage
	hosts   map[string]*usage
	flows   map[flowKey]*flow
	waiting []*flow // with waiting claims
	blocked [reasons]int64
}

// usage is what a tenant or a host holds.
type usage struct {
	name  string
	held  int64
	flows int // number of flows
}

type flowKey struct{ tenant, host string }

// flow is one tenant's work for one host.
type flow struct {
	key          flowKey
	tenant, host *usage // host is nil for ""
	held         int64
	queue        []*waiter // in order; not empty if and only if it is in Queue.waiting
}

type waiter struct {
	number uint64
	claim  Claim
	reason Reason
	done   chan struct{} // closed on admission
	in     bool
}

// New makes seats that are all free.
func New(bounds Bounds) (*Queue, error) {
	if bounds.Total < 1 || bounds.PerHost < 0 {
		return nil, fmt.Errorf("fair queue: %d seats in all, %d for a host: want at least 1", bounds.Total, bounds.PerHost)
	}
	if bounds.PerHost == 0 {
		bounds.PerHost = bounds.Total
	}
	return &Queue{bounds: bounds, tenants: map[string]*usage{}, hosts: map[string]*usage{}, flows: map[flowKey]*flow{}}, nil
}

// WaitError means that no seat became free in time; Reason is the cause.
type WaitError struct {
	Reason Reason
	Err    error // of the context; nil without waiting
}

// Error implements error.
func (e *WaitError) Error() string {
	switch e.Reason {
	case Share:
		return "the tenant uses its share of the seats, and none was released in time"
	case HostFull:
		return "the host uses all seats that it may use, and none was released in time"
	}
	return "all seats are in use, and none was released in time"
}

// Unwrap returns the context's error.
func (e *WaitError) Unwrap() error { return e.Err }

// errTooMany: a claim exceeds the total number of seats.
var errTooMany = errors.New("fair queue: the claim exceeds the number of seats")

// Hold is the admission of a claim. Call Leave once.
type Hold struct {
	queue *Queue
	flow  *flow
	count int64
}

// TryEnter takes seats if the claim can be admitted now; otherwise it returns the reason.
func (q *Queue) TryEnter(claim Claim) (hold Hold, reason Reason, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	claim.Seats = max(1, claim.Seats)
	f := q.flow(claim)
	reason, ok = q.may(f, claim)
	if ok && len(f.queue) == 0 {
		q.take(f, claim.Seats)
		return Hold{q, f, claim.Seats}, 0, true
	}
	return Hold{}, reason, false
}

// Enter waits for seats until ctx ends. Its error is a *WaitError, unless the claim can never be
// admitted.
func (q *Queue) Enter(ctx context.Context, claim Claim) (Hold, error) {
	claim.Seats = max(1, claim.Seats)
	if claim.Seats > q.bounds.Total {
		return Hold{}, errTooMany
	}
	q.mu.Lock()
	f := q.flow(claim)
	reason, ok := q.may(f, claim)
	if ok && len(f.queue) == 0 && ctx.Err() == nil {
		q.take(f, claim.Seats)
		q.mu.Unlock()
		return Hold{q, f, claim.Seats}, nil
	}
	q.arrived++
	w := &waiter{number: q.arrived, claim: claim, reason: reason, done: make(chan struct{})}
	if len(f.queue) == 0 {
		q.waiting = append(q.waiting, f)
	}
	f.queue = append(f.queue, w)
	q.blocked[reason]++
	q.mu.Unlock()
	select {
	case <-w.done:
		return Hold{q, f, claim.Seats}, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if w.in { // admitted at the same moment
		return Hold{q, f, claim.Seats}, nil
	}
	q.remove(f, w)
	q.admit() // later claims may be smaller
	return Hold{}, &WaitError{Reason: w.reason, Err: context.Cause(ctx)}
}

// Leave returns the seats.
func (h Hold) Leave() {
	q := h.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	q.take(h.flow, -h.count)
	q.admit()
}

// Held returns the number of seats in use.
func (q *Queue) Held() int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held
}

// Waiters returns the number of waiting claims with this initial reason.
func (q *Queue) Waiters(reason Reason) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.blocked[reason]
}

// Crowded reports whether a claim would wait because its tenant has its share.
func (q *Queue) Crowded(claim Claim) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	claim.Seats = max(1, claim.Seats)
	reason, ok := q.may(q.flow(claim), claim)
	return !ok && reason == Share
}

// may reports whether a claim can be admitted now, and the reason otherwise.
func (q *Queue) may(f *flow, claim Claim) (Reason, bool) {
	n, free := claim.Seats, q.bounds.Total-q.held
	switch {
	case f.host != nil && f.host.held+n > q.bounds.PerHost:
		return HostFull, false
	case n > free:
		return Full, false
	case claim.Alone:
		return 0, true
	case !within(f.tenant.held, n, share*(free-n)):
		return Share, false
	case f.host == nil:
		return 0, true
	case !within(f.held, n, hostShare*(q.bounds.PerHost-f.host.held-n)):
		return Share, false
	case !within(f.host.held, n, share*(free-n)):
		return HostFull, false
	}
	return 0, true
}

// within reports whether one with held seats may have n more. A first claim is always within
// the limit.
func within(held, n, most int64) bool { return held == 0 || held+n <= most }

// admit admits waiting claims, those of the tenant with the fewest seats first.
func (q *Queue) admit() {
	for q.held < q.bounds.Total && len(q.waiting) > 0 {
		var next *flow
		for _, f := range q.waiting {
			if _, ok := q.may(f, f.queue[0].claim); ok && (next == nil || f.before(next)) {
				next = f
			}
		}
		if next == nil {
			return
		}
		w := next.queue[0]
		q.remove(next, w)
		q.take(next, w.claim.Seats)
		w.in = true
		close(w.done)
	}
}

func (f *flow) before(other *flow) bool {
	if f.tenant.held != other.tenant.held {
		return f.tenant.held < other.tenant.held
	}
	return f.queue[0].number < other.queue[0].number
}

func (q *Queue) take(f *flow, n int64) {
	q.held += n
	f.held += n
	f.tenant.held += n
	if f.host != nil {
		f.host.held += n
	}
}

// remove removes a waiting claim from its queue.
func (q *Queue) remove(f *flow, w *waiter) {
	q.blocked[w.reason]--
	for i, other := range f.queue {
		if other == w {
			copy(f.queue[i:], f.queue[i+1:])
			f.queue[len(f.queue)-1] = nil
			f.queue = f.queue[:len(f.queue)-1]
			break
		}
	}
	if len(f.queue) > 0 {
		return
	}
	f.queue = nil
	for i, other := range q.waiting {
		if other == f {
			last := len(q.waiting) - 1
			q.waiting[i], q.waiting[last] = q.waiting[last], nil
			q.waiting = q.waiting[:last]
			return
		}
	}
}

// flow returns the flow of a claim.
func (q *Queue) flow(claim Claim) *flow {
	key := flowKey{claim.Tenant, claim.Host}
	if f, ok := q.flows[key]; ok {
		return f
	}
	if len(q.flows) >= 2*maxIdle {
		q.evictIdle()
	}
	key = flowKey{strings.Clone(claim.Tenant), strings.Clone(claim.Host)} // they may be parts of a large string
	f := &flow{key: key, tenant: addFlow(q.tenants, key.tenant)}
	if key.host != "" {
		f.host = addFlow(q.hosts, key.host)
	}
	q.flows[key] = f
	return f
}

func addFlow(all map[string]*usage, name string) *usage {
	one, ok := all[name]
	if !ok {
		one = &usage{name: name}
		all[name] = one
	}
	one.flows++
	return one
}

func removeFlow(all map[string]*usage, one *usage) {
	one.flows--
	if one.flows == 0 {
		delete(all, one.name)
	}
}

// evictIdle evicts idle flows down to maxIdle.
func (q *Queue) evictIdle() {
	for key, f := range q.flows {
		if len(q.flows) <= maxIdle {
			return
		}
		if f.held == 0 && len(f.queue) == 0 {
			delete(q.flows, key)
			removeFlow(q.tenants, f.tenant)
			if f.host != nil {
				removeFlow(q.hosts, f.host)
			}
		}
	}
}
