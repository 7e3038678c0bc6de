package redis

import (
	"sync"
	"time"
)

// A server that failed rests, so that it costs its timeout once. The rest doubles
// as long as nobody gets an answer from it.
const (
	firstRest = time.Second
	mostRest  = 30 * time.Second
)

// rest remembers whether the server is left alone. It begins awake.
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

// begin starts a rest, unless one is under way: what was asked before it and
// fails after says nothing new.
func (r *rest) begin(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastError = err
	if !r.status.Resting {
		r.start()
		r.status.Resting, r.status.Since = true, r.now()
	}
}

// again lengthens a rest after a probe that failed.
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

// end ends a rest. The next one is as long as it would have been: a server that
// answers probes and nothing else must not be tried each second.
func (r *rest) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.status.Resting {
		r.status.Resting, r.status.Since = false, r.now()
	}
}

// answered says that a caller had an answer in time.
func (r *rest) answered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.status.Resting {
		r.next = firstRest
	}
}

// noted keeps an error that is no reason to rest.
func (r *rest) noted(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastError = err
}

// left returns whether the server rests, and how much longer.
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
