package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// listeners are the sockets of a Server.
type listeners struct{ endpoints, plain, profiles net.Listener }

// Listen opens the sockets, so that the addresses are known before Run.
func (s *Server) Listen(ctx context.Context) error {
	if s.listening.plain != nil {
		return errors.New("webhook: already listening")
	}
	endpoints := s.config.Address
	if len(s.config.Endpoints) == 0 {
		endpoints = ""
	}
	for _, l := range []struct {
		to      *net.Listener
		address string
		most    int
	}{
		{&s.listening.endpoints, endpoints, maxConnections},
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
		*l.to = LimitConnections(opened, l.most)
	}
	return nil
}

// Address returns the address of the endpoints; nil before Listen and if there are no endpoints.
func (s *Server) Address() net.Addr { return addressOf(s.listening.endpoints) }

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
	for _, opened := range []*net.Listener{&l.endpoints, &l.plain, &l.profiles} {
		if *opened != nil {
			_ = (*opened).Close() // nothing was served on it
			*opened = nil
		}
	}
}

// limitedListener is a listener with a connection limit. At the limit it closes new connections and keeps the
// existing ones. A host with fewer connections than another replaces one of the other's, so that no
// single host can block the API server.
type limitedListener struct {
	net.Listener
	most int

	mu    sync.Mutex
	count int
	hosts map[string]map[*limitedConn]struct{}
}

// LimitConnections limits a listener to a number of concurrent connections, shared fairly by remote address.
// It closes excess connections.
func LimitConnections(l net.Listener, most int) net.Listener {
	return &limitedListener{Listener: l, most: most, hosts: map[string]map[*limitedConn]struct{}{}}
}

// Accept implements net.Listener.
func (c *limitedListener) Accept() (net.Conn, error) {
	for {
		connection, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g := &limitedConn{Conn: connection, listener: c, host: hostOf(connection.RemoteAddr().String())}
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
func (c *limitedListener) enter(g *limitedConn) (instead *limitedConn, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.count >= c.most {
		instead = c.fromLargestHost(len(c.hosts[g.host]) + 2)
		if instead == nil {
			return nil, false
		}
		c.remove(instead)
	}
	if c.hosts[g.host] == nil {
		c.hosts[g.host] = map[*limitedConn]struct{}{}
	}
	c.hosts[g.host][g] = struct{}{}
	c.count++
	return instead, true
}

// fromLargestHost returns a connection of the host with the most connections, if it has at least this many.
func (c *limitedListener) fromLargestHost(least int) *limitedConn {
	var most map[*limitedConn]struct{}
	for _, connections := range c.hosts {
		if len(connections) >= least && len(connections) > len(most) {
			most = connections
		}
	}
	for g := range most {
		return g
	}
	return nil
}

// remove deletes a connection from the count, once.
func (c *limitedListener) remove(g *limitedConn) {
	if _, isIn := c.hosts[g.host][g]; !isIn {
		return
	}
	c.count--
	delete(c.hosts[g.host], g)
	if len(c.hosts[g.host]) == 0 {
		delete(c.hosts, g.host)
	}
}

func (c *limitedListener) leave(g *limitedConn) {
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

// limitedConn is a connection that counts towards the limit until it is closed.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	host     string
}

// Close implements net.Conn.
func (g *limitedConn) Close() error {
	defer g.listener.leave(g)
	return g.Conn.Close()
}
