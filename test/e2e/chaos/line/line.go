// Package line simulates a bad network between two programs.
//
// A Line takes TCP connections in the place of a server and forwards them to it. The Weather
// sets its faults, and may change at any time.
package line

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// retransmission is what a packet that was lost costs TCP at least, and each further time
// twice as much, up to mostLost.
const retransmission, mostLost = 200 * time.Millisecond, 5 * time.Second

// dialTimeout bounds the connection to the server; piece is the size of a forwarded chunk, in
// bytes.
const dialTimeout, piece = 5 * time.Second, 32 << 10

// Weather is what becomes of connections. Zero: they are handed on as they come.
type Weather struct {
	// Delay passes before each piece of data is handed on.
	Delay time.Duration
	// Loss is the share of pieces that arrive only when they are sent again.
	Loss float64
	// Cut is the share of pieces upon which the connection is reset.
	Cut float64
	// Silent: connections are taken, and nothing is handed on until that is over.
	Silent bool
	// Refuse: connections are reset, those that there are and new ones.
	Refuse bool
}

// Line is a listener in front of a server.
type Line struct {
	listener net.Listener
	target   string
	stop     context.CancelFunc
	work     sync.WaitGroup

	mu      sync.Mutex
	weather Weather
	changed chan struct{} // closed when the weather changes
	open    map[*net.TCPConn]bool
}

// Listen starts a line to the server at an address. Close it in the end.
func Listen(ctx context.Context, target string) (*Line, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a line to %s: %w", target, err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &Line{listener: listener, target: target, stop: stop, changed: make(chan struct{}), open: map[*net.TCPConn]bool{}}
	l.work.Go(func() { l.accept(ctx) })
	return l, nil
}

// Address is where the line listens.
func (l *Line) Address() string { return l.listener.Addr().String() }

// Set changes the weather.
func (l *Line) Set(w Weather) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.weather = w
	close(l.changed)
	l.changed = make(chan struct{})
	if w.Refuse {
		l.reset()
	}
}

// Close ends the line and all its connections.
func (l *Line) Close() {
	l.stop()
	_ = l.listener.Close()
	l.mu.Lock()
	l.reset()
	l.mu.Unlock()
	l.work.Wait()
}

// reset resets the open connections. The caller holds the lock.
func (l *Line) reset() {
	for connection := range l.open {
		_ = connection.SetLinger(0)
		_ = connection.Close()
	}
	clear(l.open)
}

func (l *Line) now() (Weather, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.weather, l.changed
}

func (l *Line) accept(ctx context.Context) {
	for {
		front, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		l.work.Go(func() { l.hand(ctx, front.(*net.TCPConn)) })
	}
}

// hand joins a connection with one to the server.
func (l *Line) hand(ctx context.Context, front *net.TCPConn) {
	if w, _ := l.now(); w.Refuse {
		_ = front.SetLinger(0)
		_ = front.Close()
		return
	}
	back, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", l.target)
	if err != nil {
		_ = front.SetLinger(0)
		_ = front.Close()
		return
	}
	server := back.(*net.TCPConn)
	if !l.track(ctx, front, server) {
		return
	}
	var halves sync.WaitGroup
	halves.Go(func() { l.pipe(ctx, server, front) })
	l.pipe(ctx, front, server)
	halves.Wait()
	l.forget(front, server)
}

// track remembers connections, unless the line or the weather has ended them.
func (l *Line) track(ctx context.Context, connections ...*net.TCPConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range connections {
		l.open[c] = true
	}
	if ctx.Err() != nil || l.weather.Refuse {
		l.reset()
		return false
	}
	return true
}

func (l *Line) forget(connections ...*net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range connections {
		_ = c.Close()
		delete(l.open, c)
	}
}

// pipe hands one direction on until either side ends it, or the weather does.
func (l *Line) pipe(ctx context.Context, target, source *net.TCPConn) {
	buffer := make([]byte, piece)
	for {
		n, err := source.Read(buffer)
		if n > 0 {
			if !l.carry(ctx) {
				for _, c := range []*net.TCPConn{source, target} {
					_ = c.SetLinger(0)
					_ = c.Close()
				}
				return
			}
			if _, err := target.Write(buffer[:n]); err != nil {
				_ = source.Close()
				return
			}
		}
		if err != nil {
			_ = target.CloseWrite()
			return
		}
	}
}

// carry waits as long as the weather has a piece wait; false: the connection is reset.
func (l *Line) carry(ctx context.Context) bool {
	for {
		w, changed := l.now()
		switch {
		case w.Refuse || rand.Float64() < w.Cut:
			return false
		case w.Silent:
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return false
			}
		}
		wait := w.Delay
		for again := retransmission; wait < mostLost && rand.Float64() < w.Loss; again *= 2 {
			wait += again
		}
		if wait == 0 {
			return true
		}
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
