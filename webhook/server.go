package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	"github.com/quaymaster/quaymaster/internal/fairqueue"
)

// Certificates returns the certificate to serve, at each handshake. An error refuses the
// connection.
type Certificates interface {
	GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Observer receives each request to an endpoint, for metrics and traces. It must be safe for
// concurrent use, and quick.
type Observer interface {
	// Enter is called when a request begins. The name of its endpoint is the path without the
	// leading slash. The handler uses the returned context; done is called after the response is
	// written.
	Enter(r *http.Request, endpoint string) (ctx context.Context, done func(status int))
	// Panicked is called for a handler that panicked.
	Panicked(endpoint string)
}

// Endpoint is an endpoint.
type Endpoint struct {
	Handler http.Handler
	// Callers may use the endpoint; nil means all clients.
	Callers *Callers
	// Below routes all paths below the endpoint's own to the handler, too.
	Below bool
}

// Config holds the required settings of a Server.
type Config struct {
	// Address is the host:port of the endpoints, and Plain that of /healthz, /readyz and /metrics.
	// Port 0 picks a free port.
	Address, Plain string
	Certificates   Certificates
	// Endpoints are the endpoints by path, as in "/mutate". Without any, Address has no listener.
	Endpoints map[string]Endpoint
	// Checks determine readiness. /readyz evaluates and lists them in this order.
	Checks []Check
	// Metrics serves /metrics.
	Metrics http.Handler
	// Log receives the errors of clients and handlers.
	Log *slog.Logger
}

type options struct {
	observer  Observer
	delay     time.Duration
	profiling string
}

// Option changes a default of a Server.
type Option func(*options) error

// WithObserver sets the observer of requests. By default there is none.
func WithObserver(observer Observer) Option {
	return func(o *options) error {
		if observer == nil {
			return errors.New("observer must not be nil")
		}
		o.observer = observer
		return nil
	}
}

// WithDrainDelay sets how long a draining server keeps accepting requests: DefaultDrainDelay unless
// set, 5 minutes at most. With 0, clients may be refused before the endpoints are updated.
func WithDrainDelay(delay time.Duration) Option {
	return func(o *options) error {
		if delay < 0 || delay > maxDrainDelay {
			return fmt.Errorf("drain delay %s: must be 0 to %s", delay, maxDrainDelay)
		}
		o.delay = delay
		return nil
	}
}

// WithProfiling serves net/http/pprof on an address. The address must be a loopback one because
// profiles reveal internals. By default profiles are not served.
func WithProfiling(address string) Option {
	return func(o *options) error {
		parsed, err := netip.ParseAddrPort(address)
		if err != nil || !parsed.Addr().IsLoopback() {
			return fmt.Errorf("profiling: %q is not a loopback address such as 127.0.0.1:6060", address)
		}
		o.profiling = address
		return nil
	}
}

// Server is the gateway's listeners. Make one with New, and run it once.
type Server struct {
	config       Config
	options      options
	endpoints    *http.Server
	plain        *http.Server
	profiles     *http.Server // may be nil
	clientErrors *ErrorLog
	requests     *fairqueue.Queue // limited by address
	listening    listeners
	draining     atomic.Bool // not ready
	reconnecting atomic.Bool // clients are asked to reconnect
}

// New makes a Server that does not listen yet. It rejects invalid settings.
func New(config Config, with ...Option) (*Server, error) {
	o := options{observer: unobserved{}, delay: DefaultDrainDelay}
	for _, option := range with {
		if err := option(&o); err != nil {
			return nil, fmt.Errorf("webhook: %w", err)
		}
	}
	if err := config.check(); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	requests, err := fairqueue.New(fairqueue.Bounds{Total: maxRequests})
	if err != nil {
		return nil, fmt.Errorf("webhook: requests: %w", err)
	}
	s := &Server{config: config, options: o, requests: requests}
	s.clientErrors = NewErrorLog(config.Log)
	logged := log.New(s.clientErrors, "", 0)
	s.endpoints = &http.Server{
		Handler:           s.router(),
		TLSConfig:         s.tls(),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader,
		HTTP2:          &http.HTTP2Config{MaxConcurrentStreams: maxStreams, SendPingTimeout: pingAfter},
		ErrorLog:       logged,
	}
	s.plain = &http.Server{
		Handler:           s.health(),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: plainTimeout, WriteTimeout: plainTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, ErrorLog: logged,
	}
	if o.profiling != "" {
		// No WriteTimeout: the client chooses the duration of a profile.
		s.profiles = &http.Server{Handler: profiles(), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader, ErrorLog: logged}
	}
	return s, nil
}

func (c *Config) check() error {
	switch {
	case c.Certificates == nil || c.Metrics == nil || c.Log == nil:
		return errors.New("certificates, metrics and a log are required")
	}
	for name, address := range map[string]string{"address": c.Address, "plain": c.Plain} {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("%s must be host:port: %w", name, err)
		}
	}
	for path, endpoint := range c.Endpoints {
		if !strings.HasPrefix(path, "/") || len(path) == 1 || strings.ContainsAny(path, "{} ") || strings.HasSuffix(path, "/") {
			return fmt.Errorf("endpoint %q: must be a path such as /mutate", path)
		}
		if endpoint.Handler == nil {
			return fmt.Errorf("endpoint %s: a handler is required", path)
		}
	}
	return checkNames(c.Checks)
}

// tls returns the TLS settings of the endpoints: TLS 1.2 or later with Go's default ciphers. A
// client certificate is verified if the client presents one; each endpoint decides whether it
// requires it.
func (s *Server) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.config.Certificates.GetCertificate}
	if pool := poolOf(s.config.Endpoints); pool != nil {
		c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, pool
	}
	return c
}

type unobserved struct{}

func (unobserved) Enter(r *http.Request, _ string) (context.Context, func(int)) {
	return r.Context(), func(int) {}
}
func (unobserved) Panicked(string) {}
