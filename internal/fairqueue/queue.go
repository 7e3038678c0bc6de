package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
)

const (
	// share is the maximum ratio of a tenant's or host's places to the remaining free places.
	// hostShare is the ratio for a tenant and the places of one host, of which there are few.
	share     = 3
	hostShare = 7
	// maxIdle bounds the idle flows without places and claims. Each has some 200 bytes, and
	// making one costs more than a look-up.
	maxIdle = 1024
)

// Bounds set the number of places.
type Bounds struct {
	// Total is the number of places: at least 1.
	Total int64
	// PerHost is the maximum for one host; 0 means no separate limit.
	PerHost int64
}

// Claim is a request for places.
type Claim struct {
	// Tenant of the work; "" is a tenant, too.
	Tenant string
	// Host of the work; "" for none.
	Host string
	// Seats requested, all or none; 0 means 1.
	Seats int64
	// Alone: there are no other tenants, so no places are reserved for them, nor for other hosts.
	Alone bool
}

// Reason is the cause of waiting.
type Reason int

// The reasons.
const (
	// Full: all places are taken.
	Full Reason = iota
	// HostFull: the host has all of its places, or its share of all places.
	HostFull
	// Share: the tenant has its share, and the rest is reserved for others.
	Share
	reasons
)

// Queue is a set of shared places. Make it with New. It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	bounds  Bounds
	held    int64
	arrived uint64 // numbers the waiting claims
	tenants map[string]*party
	hosts   map[string]*party
	flows   map[flowKey]*flow
	waiting []*flow // with waiting claims
	blocked [reasons]int64
}

// party is a tenant or a host.
type party struct {
	name  string
	held  int64
	flows int // number of flows
}

type flowKey struct{ tenant, host string }

// flow is one tenant's work for one host.
type flow struct {
	key          flowKey
	tenant, host *party // host is nil for ""
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

// New makes places that are all free.
func New(bounds Bounds) (*Queue, error) {
	if bounds.Total < 1 || bounds.PerHost < 0 {
		return nil, fmt.Errorf("fair queue: %d seats in all, %d for a host: want at least 1", bounds.Total, bounds.PerHost)
	}
	if bounds.PerHost == 0 {
		bounds.PerHost = bounds.Total
	}
	return &Queue{bounds: bounds, tenants: map[string]*party{}, hosts: map[string]*party{}, flows: map[flowKey]*flow{}}, nil
}

// WaitError means that no place became free in time; Reason is the cause.
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

// errTooMany: a claim exceeds the total number of places.
var errTooMany = errors.New("fair queue: the claim exceeds the number of seats")

// Hold is the admission of a claim. Call Leave once.
type Hold struct {
	seats *Queue
	flow  *flow
	count int64
}

// TryEnter takes places if the claim can be admitted now; otherwise it returns the reason.
func (p *Queue) TryEnter(claim Claim) (hold Hold, reason Reason, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	claim.Seats = max(1, claim.Seats)
	f := p.flow(claim)
	reason, ok = p.may(f, claim)
	if ok && len(f.queue) == 0 {
		p.take(f, claim.Seats)
		return Hold{p, f, claim.Seats}, 0, true
	}
	return Hold{}, reason, false
}

// Enter waits for places until ctx ends. Its error is a *WaitError, unless the claim can never be
// admitted.
func (p *Queue) Enter(ctx context.Context, claim Claim) (Hold, error) {
	claim.Seats = max(1, claim.Seats)
	if claim.Seats > p.bounds.Total {
		return Hold{}, errTooMany
	}
	p.mu.Lock()
	f := p.flow(claim)
	reason, ok := p.may(f, claim)
	if ok && len(f.queue) == 0 && ctx.Err() == nil {
		p.take(f, claim.Seats)
		p.mu.Unlock()
		return Hold{p, f, claim.Seats}, nil
	}
	p.arrived++
	w := &waiter{number: p.arrived, claim: claim, reason: reason, done: make(chan struct{})}
	if len(f.queue) == 0 {
		p.waiting = append(p.waiting, f)
	}
	f.queue = append(f.queue, w)
	p.blocked[reason]++
	p.mu.Unlock()
	select {
	case <-w.done:
		return Hold{p, f, claim.Seats}, nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.in { // admitted at the same moment
		return Hold{p, f, claim.Seats}, nil
	}
	p.remove(f, w)
	p.admit() // later claims may be smaller
	return Hold{}, &WaitError{Reason: w.reason, Err: context.Cause(ctx)}
}

// Leave returns the places.
func (h Hold) Leave() {
	p := h.seats
	p.mu.Lock()
	defer p.mu.Unlock()
	p.take(h.flow, -h.count)
	p.admit()
}

// Held returns the number of places in use.
func (p *Queue) Held() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.held
}

// Waiters returns the number of waiting claims with this initial reason.
func (p *Queue) Waiters(reason Reason) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.blocked[reason]
}

// Crowded reports whether a claim would wait because its tenant has its share.
func (p *Queue) Crowded(claim Claim) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	claim.Seats = max(1, claim.Seats)
	reason, ok := p.may(p.flow(claim), claim)
	return !ok && reason == Share
}

// may reports whether a claim can be admitted now, and the reason otherwise.
func (p *Queue) may(f *flow, claim Claim) (Reason, bool) {
	n, free := claim.Seats, p.bounds.Total-p.held
	switch {
	case f.host != nil && f.host.held+n > p.bounds.PerHost:
		return HostFull, false
	case n > free:
		return Full, false
	case claim.Alone:
		return 0, true
	case !within(f.tenant.held, n, share*(free-n)):
		return Share, false
	case f.host == nil:
		return 0, true
	case !within(f.held, n, hostShare*(p.bounds.PerHost-f.host.held-n)):
		return Share, false
	case !within(f.host.held, n, share*(free-n)):
		return HostFull, false
	}
	return 0, true
}

// within reports whether a holder of held places may have n more. A first claim is always within
// the limit.
func within(held, n, most int64) bool { return held == 0 || held+n <= most }

// admit admits waiting claims, those of the tenant with the fewest places first.
func (p *Queue) admit() {
	for p.held < p.bounds.Total && len(p.waiting) > 0 {
		var next *flow
		for _, f := range p.waiting {
			if _, ok := p.may(f, f.queue[0].claim); ok && (next == nil || f.before(next)) {
				next = f
			}
		}
		if next == nil {
			return
		}
		w := next.queue[0]
		p.remove(next, w)
		p.take(next, w.claim.Seats)
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

func (p *Queue) take(f *flow, n int64) {
	p.held += n
	f.held += n
	f.tenant.held += n
	if f.host != nil {
		f.host.held += n
	}
}

// remove removes a waiting claim from its queue.
func (p *Queue) remove(f *flow, w *waiter) {
	p.blocked[w.reason]--
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
	for i, other := range p.waiting {
		if other == f {
			last := len(p.waiting) - 1
			p.waiting[i], p.waiting[last] = p.waiting[last], nil
			p.waiting = p.waiting[:last]
			return
		}
	}
}

// flow returns the flow of a claim.
func (p *Queue) flow(claim Claim) *flow {
	key := flowKey{claim.Tenant, claim.Host}
	if f, ok := p.flows[key]; ok {
		return f
	}
	if len(p.flows) >= 2*maxIdle {
		p.forget()
	}
	key = flowKey{strings.Clone(claim.Tenant), strings.Clone(claim.Host)} // they may be parts of a large string
	f := &flow{key: key, tenant: join(p.tenants, key.tenant)}
	if key.host != "" {
		f.host = join(p.hosts, key.host)
	}
	p.flows[key] = f
	return f
}

func join(parties map[string]*party, name string) *party {
	one, ok := parties[name]
	if !ok {
		one = &party{name: name}
		parties[name] = one
	}
	one.flows++
	return one
}

func part(parties map[string]*party, one *party) {
	one.flows--
	if one.flows == 0 {
		delete(parties, one.name)
	}
}

// forget evicts idle flows down to maxIdle.
func (p *Queue) forget() {
	for key, f := range p.flows {
		if len(p.flows) <= maxIdle {
			return
		}
		if f.held == 0 && len(f.queue) == 0 {
			delete(p.flows, key)
			part(p.tenants, f.tenant)
			if f.host != nil {
				part(p.hosts, f.host)
			}
		}
	}
}
