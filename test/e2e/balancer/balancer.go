// Package balancer answers: what does a Service do in front of several replicas?
//
// It hands TCP connections, not requests, to the backends that are ready, in
// turn, as kube-proxy does: a connection stays with its backend until either
// side ends it, also when the backend is no longer ready.
package balancer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/test/e2e/process"
)

// pause is the time between two questions for readiness; dialTimeout bounds
// one try to connect.
const pause, dialTimeout = 50 * time.Millisecond, time.Second

// Backend is a replica.
type Backend struct {
	// Address that connections are handed to.
	Address string
	// Ready is the URL that answers 200 while the replica is ready. If empty it
	// is ready while it can be connected to.
	Ready string
}

// Balancer is a listener in front of backends.
type Balancer struct {
	listener net.Listener
	backends []Backend
	client   *http.Client
	stop     context.CancelFunc
	work     sync.WaitGroup

	mu          sync.Mutex
	next        int
	unready     map[string]bool
	connections map[string]int
	open        map[net.Conn]bool
}

// Listen starts a balancer on loopback. Close it in the end.
func Listen(ctx context.Context, backends ...Backend) (*Balancer, error) {
	if len(backends) == 0 {
		return nil, errors.New("a balancer needs backends")
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	b := &Balancer{
		listener: listener, backends: backends, client: &http.Client{Timeout: dialTimeout}, stop: stop,
		unready: map[string]bool{}, connections: map[string]int{}, open: map[net.Conn]bool{},
	}
	b.look(ctx)
	b.work.Go(func() { b.watch(ctx) })
	b.work.Go(func() { b.accept(ctx) })
	return b, nil
}

// Address is where the balancer listens.
func (b *Balancer) Address() string { return b.listener.Addr().String() }

// Connections returns how many connections a backend was given.
func (b *Balancer) Connections(address string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.connections[address]
}

// Close ends the balancer and all its connections.
func (b *Balancer) Close() {
	b.stop()
	_ = b.listener.Close()
	b.mu.Lock()
	for connection := range b.open {
		_ = connection.Close()
	}
	b.mu.Unlock()
	b.work.Wait()
}

// watch follows readiness.
func (b *Balancer) watch(ctx context.Context) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.look(ctx)
		case <-ctx.Done():
			return
		}
	}
}

func (b *Balancer) look(ctx context.Context) {
	for _, backend := range b.backends {
		if backend.Ready == "" {
			continue
		}
		unready := process.Answers(ctx, b.client, backend.Ready) != nil
		b.mu.Lock()
		b.unready[backend.Address] = unready
		b.mu.Unlock()
	}
}

func (b *Balancer) accept(ctx context.Context) {
	for {
		front, err := b.listener.Accept()
		if err != nil {
			return // closed
		}
		b.work.Go(func() { b.hand(ctx, front) })
	}
}

// hand joins a connection with one to the next backend that takes it.
func (b *Balancer) hand(ctx context.Context, front net.Conn) {
	defer func() { _ = front.Close() }()
	back, err := b.dial(ctx)
	if err != nil {
		return // the caller sees a connection that ends, as with a Service without endpoints
	}
	defer func() { _ = back.Close() }()
	if !b.track(ctx, front, back) {
		return
	}
	defer b.forget(front, back)
	half := make(chan struct{})
	go func() {
		defer close(half)
		pipe(back, front)
	}()
	pipe(front, back)
	<-half
}

// pipe copies until the source ends and then closes the target for writing.
func pipe(target, source net.Conn) {
	_, err := io.Copy(target, source)
	if half, ok := target.(*net.TCPConn); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	_ = target.Close()
	_ = source.Close()
}

func (b *Balancer) dial(ctx context.Context) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout}
	errs := []error{errors.New("no backend takes a connection")}
	for range b.backends {
		backend, ok := b.pick()
		if !ok {
			break
		}
		connection, err := dialer.DialContext(ctx, "tcp", backend)
		if err == nil {
			b.mu.Lock()
			b.connections[backend]++
			b.mu.Unlock()
			return connection, nil
		}
		errs = append(errs, fmt.Errorf("%s: %w", backend, err))
	}
	return nil, errors.Join(errs...)
}

// pick returns the next backend that is ready.
func (b *Balancer) pick() (address string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range b.backends {
		backend := b.backends[b.next%len(b.backends)]
		b.next++
		if !b.unready[backend.Address] {
			return backend.Address, true
		}
	}
	return "", false
}

// track remembers connections for Close, unless that came first.
func (b *Balancer) track(ctx context.Context, connections ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil {
		return false
	}
	for _, connection := range connections {
		b.open[connection] = true
	}
	return true
}

func (b *Balancer) forget(connections ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, connection := range connections {
		delete(b.open, connection)
	}
}
