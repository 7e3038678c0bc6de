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
		*l.to = Crowd(opened, l.most)
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

// crowd is a listener that lets so many in at once. Further ones are turned away, and those
// who are in go on being served; but an address that has fewer in than another is let in in
// place of one of the other's: a stranger's connections do not keep the API server out.
type crowd struct {
	net.Listener
	most int

	mu    sync.Mutex
	in    int
	hosts map[string]map[*guest]struct{}
}

// Crowd makes a listener that serves so many connections at once, by the addresses they
// come from, and closes those that are too many.
func Crowd(l net.Listener, most int) net.Listener {
	return &crowd{Listener: l, most: most, hosts: map[string]map[*guest]struct{}{}}
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	for {
		connection, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g := &guest{Conn: connection, crowd: c, host: hostOf(connection.RemoteAddr().String())}
		instead, ok := c.enter(g)
		if instead != nil {
			_ = instead.Close() // whose host has others
		}
		if ok {
			return g, nil
		}
		_ = connection.Close() // it was never served
	}
}

// enter lets a guest in, if there is room or if another has to leave instead.
func (c *crowd) enter(g *guest) (instead *guest, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in >= c.most {
		if instead = c.ofMost(len(c.hosts[g.host]) + 2); instead == nil {
			return nil, false
		}
		c.remove(instead)
	}
	if c.hosts[g.host] == nil {
		c.hosts[g.host] = map[*guest]struct{}{}
	}
	c.hosts[g.host][g] = struct{}{}
	c.in++
	return instead, true
}

// ofMost returns a guest of the host that has most, if that is so many.
func (c *crowd) ofMost(least int) *guest {
	var most map[*guest]struct{}
	for _, guests := range c.hosts {
		if len(guests) >= least && len(guests) > len(most) {
			most = guests
		}
	}
	for g := range most {
		return g
	}
	return nil
}

// remove forgets a guest, once.
func (c *crowd) remove(g *guest) {
	if _, isIn := c.hosts[g.host][g]; !isIn {
		return
	}
	c.in--
	if delete(c.hosts[g.host], g); len(c.hosts[g.host]) == 0 {
		delete(c.hosts, g.host)
	}
}

func (c *crowd) leave(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(g)
}

// hostOf is an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// guest is a connection that counts until it is closed.
type guest struct {
	net.Conn
	crowd *crowd
	host  string
}

// Close implements net.Conn.
func (g *guest) Close() error {
	defer g.crowd.leave(g)
	return g.Conn.Close()
}
