package gateway

import (
	"context"
	"sync"
)

// signal notifies all waiting goroutines of a change.
type signal struct {
	mu   sync.Mutex
	next chan struct{}
}

// Changed returns a channel that is closed at the next change. Call it before reading the
// observed state.
func (s *signal) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

func (s *signal) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// changing is a source of change notifications.
type changing interface{ Changed() <-chan struct{} }

// notice passes changes of either on until ctx ends. to holds one value and need not be read for
// each change.
func notice(ctx context.Context, to chan<- struct{}, one, other changing) {
	first, second := one.Changed(), other.Changed()
	for {
		select {
		case <-ctx.Done():
			return
		case <-first:
			first = one.Changed()
		case <-second:
			second = other.Changed()
		}
		select {
		case to <- struct{}{}:
		default:
		}
	}
}
