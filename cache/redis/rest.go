package redis

import (
	"sync"
	"time"
)

// A server that failed rests, so that an outage costs one timeout. The rest doubles until a
// caller gets a response.
const (
	firstRest = time.Second
	mostRest  = 30 * time.Second
)

// rest is the state of not contacting the server. It starts without a rest.
type rest struct {
	now func() time.Time

	mu     sync.Mutex
	status Status
	until  time.Time
	next   time.Duration
}

func newRest(now func() time.Time) *rest {
	return &rest{now: now, next: firstRest, status: Status{Since: now()}}
}

// begin starts a rest, unless one is in progress: later failures of earlier requests carry no
// information.
func (r *rest) begin(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastError = err
	if !r.status.Resting {
		r.start()
		r.status.Resting, r.status.Since = true, r.now()
	}
}

// again extends a rest after a failed probe.
func (r *rest) again(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastError = err
	r.start()
}

func (r *rest) start() {
	r.until = r.now().Add(r.next)
	r.next = min(2*r.next, mostRest)
}

// end ends a rest. The next one is as long as it would have been: a server that responds only to
// probes must not be tried each second.
func (r *rest) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status.Resting {
		r.status.Resting, r.status.Since = false, r.now()
	}
}

// answered records a timely response to a caller.
func (r *rest) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.status.Resting {
		r.next = firstRest
	}
}

// noted records an error that does not start a rest.
func (r *rest) noted(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastError = err
}

// left returns whether the server rests, and for how much longer.
func (r *rest) left() (time.Duration, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.until.Sub(r.now()), r.status.Resting
}

func (r *rest) state() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}
