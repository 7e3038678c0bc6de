package registry

import (
	"context"
	"sync"
)

// lanes bounds how many requests run at once, to one host and in all. A host
// is remembered only while somebody uses or waits for it.
type lanes struct {
	perHost int
	total   chan struct{}

	mu    sync.Mutex
	hosts map[string]*lane
}

type lane struct {
	users int
	slots chan struct{}
}

func newLanes(perHost, total int) *lanes {
	return &lanes{perHost: perHost, total: make(chan struct{}, total), hosts: map[string]*lane{}}
}

// enter waits for a place; leave gives it back. The host's place comes first,
// so that a slow host does not hold places that others could use.
func (l *lanes) enter(ctx context.Context, host string) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	mine := l.join(host)
	select {
	case mine.slots <- struct{}{}:
	case <-ctx.Done():
		l.part(host)
		return nil, ctx.Err()
	}
	select {
	case l.total <- struct{}{}:
	case <-ctx.Done():
		<-mine.slots
		l.part(host)
		return nil, ctx.Err()
	}
	return func() {
		<-l.total
		<-mine.slots
		l.part(host)
	}, nil
}

func (l *lanes) join(host string) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine, ok := l.hosts[host]
	if !ok {
		mine = &lane{slots: make(chan struct{}, l.perHost)}
		l.hosts[host] = mine
	}
	mine.users++
	return mine
}

func (l *lanes) part(host string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := l.hosts[host]
	if mine.users--; mine.users == 0 {
		delete(l.hosts, host)
	}
}
