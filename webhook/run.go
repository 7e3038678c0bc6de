package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

var errShutdown = errors.New("the gateway is shutting down")

// Run serves until ctx ends and then drains. It returns when all requests are answered; its error
// reports aborted requests. It opens the sockets unless Listen did. A failing listener ends the
// server at once.
func (s *Server) Run(ctx context.Context) error {
	if s.listening.plain == nil {
		if err := s.Listen(ctx); err != nil {
			return err
		}
	}
	// Requests must outlive ctx: the drain begins when ctx ends.
	work, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	failed := make(chan error, 3)
	s.serve(work, failed)
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		err = s.drain(work, failed)
	}
	return errors.Join(err, s.close())
}

// serve starts the servers.
func (s *Server) serve(work context.Context, failed chan<- error) {
	start := func(name string, server *http.Server, on func() error) {
		server.BaseContext = func(net.Listener) context.Context { return work }
		go func() {
			if err := on(); !errors.Is(err, http.ErrServerClosed) {
				failed <- fmt.Errorf("webhook: serve %s: %w", name, err)
			}
		}()
	}
	if s.listening.endpoints != nil {
		start("endpoints", s.endpoints, func() error { return s.endpoints.ServeTLS(s.listening.endpoints, "", "") })
	}
	start("plain", s.plain, func() error { return s.plain.Serve(s.listening.plain) })
	if s.profiles != nil {
		start("profiles", s.profiles, func() error { return s.profiles.Serve(s.listening.profiles) })
	}
}

// drain keeps accepting requests for the delay. In its second half the server asks clients to
// reconnect. Afterwards it accepts no requests and waits for those in flight.
func (s *Server) drain(work context.Context, failed <-chan error) error {
	s.draining.Store(true)
	s.config.Log.LogAttrs(work, slog.LevelInfo, "drain started: not ready, still serving", slog.Duration("for", s.options.delay))
	// During the first half the endpoints are updated. A client that reconnects earlier could reach
	// this replica again.
	for _, reconnecting := range []bool{false, true} {
		s.reconnecting.Store(reconnecting)
		select {
		case err := <-failed:
			return err
		case <-time.After(s.options.delay / 2):
		}
	}
	bound, release := context.WithTimeout(work, shutdownTimeout)
	defer release()
	s.reconnecting.Store(true)
	if err := s.endpoints.Shutdown(bound); err != nil {
		return fmt.Errorf("webhook: drain: requests in flight after %s were aborted: %w", shutdownTimeout, err)
	}
	s.config.Log.LogAttrs(work, slog.LevelInfo, "drain complete: all requests are answered")
	return nil
}

// close closes the servers, the plain server last: until then probes get a correct answer.
func (s *Server) close() error {
	var errs []error
	for _, server := range []*http.Server{s.endpoints, s.profiles, s.plain} {
		if server == nil {
			continue
		}
		if err := server.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, fmt.Errorf("webhook: close: %w", err))
		}
	}
	return errors.Join(errs...)
}
