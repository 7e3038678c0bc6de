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
		return errors.New("webhook: already listening")
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

// Address returns the address of the endpoints; nil before Listen and if there are no endpoints.
func (s *Server) Address() net.Addr { return addressOf(s.listening.doors) }

// PlainAddress returns the address of /healthz, /readyz and /metrics; nil before Listen.
func (s *Server) PlainAddress() net.Addr { return addressOf(s.listening.plain) }

// ProfilingAddress returns the address of the profiles; nil before Listen and without
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

// crowd is a listener with a connection limit. At the limit it closes new connections and keeps the
// existing ones. A host with fewer connections than another replaces one of the other's, so that no
// single host can block the API server.
type crowd struct {
	net.Listener
	most int

	mu    sync.Mutex
	in    int
	hosts map[string]map[*guest]struct{}
}

// Crowd limits a listener to a number of concurrent connections, shared fairly by remote address.
// It closes excess connections.
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
			_ = instead.Close() // its host has others
		}
		if ok {
			return g, nil
		}
		_ = connection.Close() // it was never served
	}
}

// enter admits a connection if the limit allows it or if another connection is closed instead.
func (c *crowd) enter(g *guest) (instead *guest, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.in >= c.most {
		instead = c.ofMost(len(c.hosts[g.host]) + 2)
		if instead == nil {
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

// ofMost returns a connection of the host with the most connections, if it has at least this many.
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

// remove deletes a connection from the count, once.
func (c *crowd) remove(g *guest) {
	if _, isIn := c.hosts[g.host][g]; !isIn {
		return
	}
	c.in--
	delete(c.hosts[g.host], g)
	if len(c.hosts[g.host]) == 0 {
		delete(c.hosts, g.host)
	}
}

func (c *crowd) leave(g *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(g)
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}

// guest is a connection that counts towards the limit until it is closed.
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
