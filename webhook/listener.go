package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// listeners are the sockets of a Server.
type listeners struct{ doors, plain, profiles net.Listener }

// Listen opens the sockets, so that the addresses are known before Run.
func (s *Server) Listen(ctx context.Context) error {
	if s.listening.plain != nil {
		return errors.New("webhook: listening already")
	}
	doors := s.config.Address
	if len(s.config.Doors) == 0 {
		doors = ""
	}
	for _, l := range []struct {
		to      *net.Listener
		address string
		most    int
	}{
		{&s.listening.doors, doors, maxConnections},
		{&s.listening.plain, s.config.Plain, maxPlainConnections},
		{&s.listening.profiles, s.options.profiling, maxPlainConnections},
	} {
		if l.address == "" {
			continue
		}
		opened, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.address)
		if err != nil {
			s.listening.close()
			return fmt.Errorf("webhook: listen: %w", err)
		}
		*l.to = &crowd{Listener: opened, most: l.most}
	}
	return nil
}

// Address returns where the doors are; nil before Listen and where there are none.
func (s *Server) Address() net.Addr { return addressOf(s.listening.doors) }

// PlainAddress returns where /healthz, /readyz and /metrics are; nil before
// Listen.
func (s *Server) PlainAddress() net.Addr { return addressOf(s.listening.plain) }

// ProfilingAddress returns where profiles are; nil before Listen and without
// WithProfiling.
func (s *Server) ProfilingAddress() net.Addr { return addressOf(s.listening.profiles) }

func addressOf(l net.Listener) net.Addr {
	if l == nil {
		return nil
	}
	return l.Addr()
}

func (l *listeners) close() {
	for _, opened := range []*net.Listener{&l.doors, &l.plain, &l.profiles} {
		if *opened != nil {
			_ = (*opened).Close() // nothing was served on it
			*opened = nil
		}
	}
}

// crowd is a listener that lets so many in at once and turns further ones away:
// those who are in go on being served.
type crowd struct {
	net.Listener
	most int

	mu sync.Mutex
	in int
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		connection, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c.enter() {
			return &guest{Conn: connection, leave: sync.OnceFunc(c.leave)}, nil
		}
		_ = connection.Close() // it was never served
	}
}

func (c *crowd) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in >= c.most {
		return false
	}
	c.in++
	return true
}

func (c *crowd) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.in--
}

// guest is a connection that counts until it is closed.
type guest struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (g *guest) Close() error {
	defer g.leave()
	return g.Conn.Close()
}
