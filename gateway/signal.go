package gateway

import (
	"context"
	"sync"
	"time"
)

// Signal notifies all waiting goroutines of a change. Its zero value is ready to use.
type Signal struct {
	mu   sync.Mutex
	next chan struct{}
}

// Changed returns a channel that is closed at the next change. Call it before reading the
// observed state.
func (s *Signal) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// Notify reports a change.
func (s *Signal) Notify() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// Changing is a source of change notifications.
type Changing interface{ Changed() <-chan struct{} }

// Idle waits for d, or until ctx ends.
func Idle(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
