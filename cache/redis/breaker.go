package redis

import (
	"sync"
	"time"
)

// A server that failed is not contacted for a pause, so that an outage costs one timeout. The pause
// doubles until a caller gets a response.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// breaker decides whether the server is contacted. Initially it is.
type breaker struct {
	now func() time.Time

	mu     sync.Mutex
	status Status
	until  time.Time
	next   time.Duration
}

func newBreaker(now func() time.Time) *breaker {
	return &breaker{now: now, next: firstPause, status: Status{Since: now()}}
}

// open marks the server unavailable, unless it already is: later failures of earlier requests carry
// no information.
func (b *breaker) open(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.LastError = err
	if !b.status.Unavailable {
		b.start()
		b.status.Unavailable, b.status.Since = true, b.now()
	}
}

// extend starts another pause after a failed probe.
func (b *breaker) extend(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.LastError = err
	b.start()
}

func (b *breaker) start() {
	b.until = b.now().Add(b.next)
	b.next = min(2*b.next, maxPause)
}

// close marks the server available. The next pause is as long as it would have been: a server that
// responds only to probes must not be tried each second.
func (b *breaker) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.status.Unavailable {
		b.status.Unavailable, b.status.Since = false, b.now()
	}
}

// responded records a timely response to a caller.
func (b *breaker) responded() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.status.Unavailable {
		b.next = firstPause
	}
}

// record records an error that does not make the server unavailable.
func (b *breaker) record(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status.LastError = err
}

// remaining returns the rest of the pause, and whether the server is unavailable.
func (b *breaker) remaining() (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.until.Sub(b.now()), b.status.Unavailable
}

func (b *breaker) state() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.status
}
