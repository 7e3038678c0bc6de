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

	"github.com/quaymaster/quaymaster/internal/fair"
)

// Certificates gives the certificate to serve, at each handshake; an error
// refuses the connection.
type Certificates interface {
	GetCertificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error)
}

// Observer is told of each request to a door, for metrics and traces. It is
// called from many goroutines and must be quick.
type Observer interface {
	// Enter is called when a request begins, with the name of its door: the path
	// without the first slash. The context is the handler's; done is called when the
	// answer is written.
	Enter(r *http.Request, door string) (ctx context.Context, done func(status int))
	// Panicked is called for a handler that panicked.
	Panicked(door string)
}

// Door is what is behind a path.
type Door struct {
	Handler http.Handler
	// Callers are those who may enter; nil means everybody.
	Callers *Callers
	// Below has the handler answer at all paths below its own, too.
	Below bool
}

// Config is what a Server cannot do without.
type Config struct {
	// Address of the doors, and Plain that of /healthz, /readyz and /metrics, as
	// host:port; port 0 is any that is free.
	Address, Plain string
	Certificates   Certificates
	// Doors by path, as in "/mutate"; without any, nothing listens at Address.
	Doors map[string]Door
	// Checks say whether the gateway can decide; /readyz asks and lists them in this
	// order.
	Checks []Check
	// Metrics answers /metrics.
	Metrics http.Handler
	// Log is told of what callers and handlers do wrong.
	Log *slog.Logger
}

type options struct {
	observer  Observer
	delay     time.Duration
	profiling string
}

// Option changes a default of a Server.
type Option func(*options) error

// WithObserver tells of each request; nobody unless set.
func WithObserver(observer Observer) Option {
	return func(o *options) error {
		if observer == nil {
			return errors.New("observer: want one")
		}
		o.observer = observer
		return nil
	}
}

// WithDrainDelay sets how long requests are still taken after a drain began:
// DefaultDrainDelay unless set, 5 minutes at most. With 0 a caller may find
// nobody listening before it is told of it.
func WithDrainDelay(delay time.Duration) Option {
	return func(o *options) error {
		if delay < 0 || delay > maxDrainDelay {
			return fmt.Errorf("drain delay %s: want 0 to %s", delay, maxDrainDelay)
		}
		o.delay = delay
		return nil
	}
}

// WithProfiling serves net/http/pprof on an address, which must be a loopback
// one: profiles tell much. Nowhere unless set.
func WithProfiling(address string) Option {
	return func(o *options) error {
		parsed, err := netip.ParseAddrPort(address)
		if err != nil || !parsed.Addr().IsLoopback() {
			return fmt.Errorf("profiling: %q: want a loopback address such as 127.0.0.1:6060", address)
		}
		o.profiling = address
		return nil
	}
}

// Server is the gateway's listeners. Make one with New, and run it once.
type Server struct {
	config    Config
	options   options
	doors     *http.Server
	plain     *http.Server
	profiles  *http.Server // may be nil
	strangers *ErrorLog
	requests  *fair.Places // by address
	listening listeners
	draining  atomic.Bool // not ready
	leaving   atomic.Bool // callers are asked to connect anew
}

// New makes a Server that does not listen yet. It refuses what means nothing.
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
	requests, err := fair.New(fair.Bounds{Total: maxRequests})
	if err != nil {
		return nil, fmt.Errorf("webhook: requests: %w", err)
	}
	s := &Server{config: config, options: o, requests: requests}
	s.strangers = NewErrorLog(config.Log)
	logged := log.New(s.strangers, "", 0)
	s.doors = &http.Server{
		Handler:           s.entrance(),
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
		// No WriteTimeout: a profile takes as long as was asked for.
		s.profiles = &http.Server{Handler: profiles(), ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader, ErrorLog: logged}
	}
	return s, nil
}

func (c *Config) check() error {
	switch {
	case c.Certificates == nil || c.Metrics == nil || c.Log == nil:
		return errors.New("want certificates, metrics and a log")
	}
	for name, address := range map[string]string{"address": c.Address, "plain": c.Plain} {
		if _, _, err := net.SplitHostPort(address); err != nil {
			return fmt.Errorf("%s: want host:port: %w", name, err)
		}
	}
	for path, door := range c.Doors {
		if !strings.HasPrefix(path, "/") || len(path) == 1 || strings.ContainsAny(path, "{} ") || strings.HasSuffix(path, "/") {
			return fmt.Errorf("door %q: want a path such as /mutate", path)
		}
		if door.Handler == nil {
			return fmt.Errorf("door %s: want a handler", path)
		}
	}
	return checkNames(c.Checks)
}

// tls is how connections to the doors are secured: Go's own choice of ciphers
// from TLS 1.2 on, and a certificate of the caller if it has one that any door
// knows. Who may enter is each door's matter.
func (s *Server) tls() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.config.Certificates.GetCertificate}
	if pool := poolOf(s.config.Doors); pool != nil {
		c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, pool
	}
	return c
}

type unobserved struct{}

func (unobserved) Enter(r *http.Request, _ string) (context.Context, func(int)) {
	return r.Context(), func(int) {}
}
func (unobserved) Panicked(string) {}
