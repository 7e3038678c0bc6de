package publish

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// pending are the changes that are not due yet. Each report has at most one pending change and
// one that is being written.
type pending struct {
	most int
	now  func() time.Time
	wake chan struct{} // a change may be due
	room chan struct{} // a change was removed

	mu      sync.Mutex
	changes map[address]*change
	order   byDue
	busy    map[address]bool
	results int
	bytes   int
	hurried bool
}

func newPending(most int, now func() time.Time) *pending {
	return &pending{
		most: most, now: now, wake: make(chan struct{}, 1), room: make(chan struct{}, 1),
		changes: map[address]*change{}, busy: map[address]bool{},
	}
}

// add adds a change, and waits for free capacity until ctx ends.
func (p *pending) add(ctx context.Context, c *change) error {
	for !p.tryAdd(c) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.room:
		}
	}
	nudge(p.room) // another change may fit, too
	return nil
}

// tryAdd adds a change. While there is no capacity, all pending changes are due at once.
func (p *pending) tryAdd(c *change) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, bytes := c.size(); p.bytes > 0 && p.bytes+bytes > p.most {
		p.hurry()
		return false
	}
	p.put(c, p.now())
	return true
}

// again returns a change after a failed write, to be retried after a pause. Changes that arrived
// in the meantime are newer.
func (p *pending) again(c *change, pause time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if newer := p.changes[c.address()]; newer != nil {
		p.remove(newer)
		newer.tries = 0
		c.join(newer)
	}
	c.notBefore = p.now().Add(pause)
	p.put(c, c.first)
}

// put is add without a bound; the caller holds the lock.
func (p *pending) put(c *change, now time.Time) {
	have := p.changes[c.address()]
	if have == nil {
		c.first = now
		p.changes[c.address()] = c
		p.count(c, 1)
		p.arrange(c, now)
		heap.Push(&p.order, c)
	} else {
		p.count(have, -1)
		have.join(c)
		p.count(have, 1)
		p.arrange(have, now)
		heap.Fix(&p.order, have.index)
	}
	nudge(p.wake)
}

// arrange sets the due time of a change.
func (p *pending) arrange(c *change, now time.Time) {
	c.due = now.Add(quiet)
	if end := c.first.Add(longest); end.Before(c.due) {
		c.due = end
	}
	if p.hurried {
		c.due = now
	}
	if c.notBefore.After(c.due) {
		c.due = c.notBefore
	}
}

// hurry makes all changes due, except those that wait for a retry; the caller holds the lock.
func (p *pending) hurry() {
	now := p.now()
	for _, c := range p.order {
		if c.due.After(now) && !c.notBefore.After(now) {
			c.due = now
		}
	}
	heap.Init(&p.order)
	nudge(p.wake)
}

// drain makes all current and future changes due.
func (p *pending) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hurried = true
	for _, c := range p.order {
		c.notBefore = time.Time{}
	}
	p.hurry()
}

// next removes the change that is due first. It waits for it until ctx ends.
func (p *pending) next(ctx context.Context) (*change, bool) {
	for ctx.Err() == nil {
		c, pause := p.take()
		if c != nil {
			return c, true
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil, false
}

// take returns a due change, or the time until the next one is due.
func (p *pending) take() (*change, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	var skipped []*change
	defer func() {
		for _, c := range skipped {
			heap.Push(&p.order, c)
		}
	}()
	for len(p.order) > 0 {
		c := p.order[0]
		if c.due.After(now) {
			return nil, c.due.Sub(now)
		}
		heap.Pop(&p.order)
		if p.busy[c.address()] {
			skipped = append(skipped, c) // at most as many as there are workers
			continue
		}
		delete(p.changes, c.address())
		p.count(c, -1)
		p.busy[c.address()] = true
		if len(p.order) > 0 {
			nudge(p.wake)
		}
		nudge(p.room)
		return c, 0
	}
	return nil, longest
}

// done marks a change as finished.
func (p *pending) done(at address) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.busy, at)
	nudge(p.wake)
}

func (p *pending) remove(c *change) {
	delete(p.changes, c.address())
	p.count(c, -1)
	heap.Remove(&p.order, c.index)
}

// count updates the size of the pending changes.
func (p *pending) count(c *change, by int) {
	results, bytes := c.size()
	p.results += by * results
	p.bytes += by * bytes
}

// awaitIdle returns when no change is pending or being written, or when ctx ends.
func (p *pending) awaitIdle(ctx context.Context) {
	ticker := time.NewTicker(idlePause)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if p.idle() {
			return
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// size returns the number of pending results and their size in bytes.
func (p *pending) size() (results, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.results, p.bytes
}

// idle reports whether no change is pending or being written.
func (p *pending) idle() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.changes)+len(p.busy) == 0
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// byDue is a heap of changes.
type byDue []*change

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due.Before(h[j].due) }
func (h byDue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *byDue) Push(x any) {
	c := x.(*change) //nolint:forcetypeassert // nothing else is in it
	c.index = len(*h)
	*h = append(*h, c)
}

// Pop implements heap.Interface.
func (h *byDue) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return c
}
