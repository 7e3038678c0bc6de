package registry

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/internal/fairqueue"
	"github.com/quaymaster/quaymaster/registry/internal/guard"
	"github.com/quaymaster/quaymaster/registry/internal/login"
	"github.com/quaymaster/quaymaster/registry/internal/memory"
	"github.com/quaymaster/quaymaster/registry/ratelimit"
)

// Config configures access to registries. The zero value asks anonymously, over TLS with
// the system's roots (loopback hosts over plain HTTP), and connects to public and private
// addresses.
type Config struct {
	// UserAgent names the client; the default is "quaymaster".
	UserAgent string
	// Credentials are tried in order: the first that a source has for a
	// repository, and when the registry refuses it, the next.
	Credentials []Source
	// RootCAs replaces the system's roots; nil keeps them.
	RootCAs *x509.CertPool
	// PlainHTTP lists hosts (host or host:port, as in references) that are asked without TLS.
	// An on-path attacker can read credentials and rewrite tags.
	PlainHTTP []string
	// LoopbackTLS lists loopback hosts that use TLS. Others are asked over plain HTTP first,
	// and over TLS once they answer that it is required.
	LoopbackTLS []string
	// Hosts are settings of single hosts, by host or host:port as references
	// write them. Each has connections of its own.
	Hosts map[string]Host
	// Realms lists, by registry host, further hosts of token services that may
	// be given its credential. Without an entry, the host must have the
	// registrable domain in common, and TLS.
	Realms map[string][]string
	// Loopback lists additional host names that may resolve to a loopback address.
	Loopback []string
	// NoPrivate refuses private addresses.
	NoPrivate bool
	// Resolver looks names up; nil means the system's.
	Resolver *net.Resolver
}

// Option changes a default of New.
type Option func(*Client) error

// WithConcurrency sets how many requests run at once, to one host (default 16)
// and in all (default 64); both at least 1.
func WithConcurrency(perHost, total int) Option {
	return func(c *Client) error {
		if perHost < 1 || total < 1 {
			return fmt.Errorf("registry client: concurrency of %d and %d: want at least 1", perHost, total)
		}
		var err error
		c.concurrency, err = fairqueue.New(fairqueue.Bounds{Total: int64(total), PerHost: int64(perHost)})
		return err
	}
}

// WithAllowance shares rate limits, and the responses of registries about them, with other
// Clients of the same book; each has its own unless set. A Client with deferrable requests
// (background) leaves a scarce limit to the others.
func WithAllowance(book *ratelimit.Limiter, background bool) Option {
	return func(c *Client) error {
		if book == nil {
			return errors.New("registry client: the book of allowances is nil")
		}
		c.limiter, c.background = book, background
		return nil
	}
}

// WithTimeout sets how long one try may take, with its body (default 20 s).
func WithTimeout(perTry time.Duration) Option {
	return func(c *Client) error {
		if perTry <= 0 {
			return fmt.Errorf("registry client: timeout of %v: want more than 0", perTry)
		}
		c.timeout = perTry
		return nil
	}
}

// WithBackoff sets the pause before the first retry (default 200 ms), which
// doubles and is jittered.
func WithBackoff(first time.Duration) Option {
	return func(c *Client) error {
		if first <= 0 {
			return fmt.Errorf("registry client: backoff of %v: want more than 0", first)
		}
		c.backoff = first
		return nil
	}
}

// WithProxy sends requests through the proxy that choose names, as
// http.ProxyFromEnvironment does. Addresses behind a proxy cannot be checked
// here; the proxy's own address is.
func WithProxy(choose func(*http.Request) (*url.URL, error)) Option {
	return func(c *Client) error {
		if choose == nil {
			return errors.New("registry client: the proxy is nil")
		}
		for _, transport := range c.transports.all() {
			transport.Proxy = choose
		}
		return nil
	}
}

// WithObserver has seen called for each HTTP request, those for tokens and
// after redirects too, when its answer begins: with the host that was asked
// (host or host:port), the status (0 without an answer) and how long it took.
// Hosts are as many as people write into image references. It is called from
// many goroutines and must be quick.
func WithObserver(seen func(host string, status int, took time.Duration)) Option {
	return func(c *Client) error {
		if seen == nil {
			return errors.New("registry client: the observer is nil")
		}
		c.seen = seen
		return nil
	}
}

// Client sends requests to registries. It is safe for use by many goroutines. Make it
// once: it caches tokens and connections.
type Client struct {
	requester
	apis apis // whether registries have the referrers API
}

// New makes a Client, and refuses a configuration that contradicts itself.
func New(config Config, options ...Option) (*Client, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	dialer := dial.New(dial.Config{Loopback: config.Loopback, NoPrivate: config.NoPrivate, Resolver: config.Resolver})
	concurrency, err := fairqueue.New(fairqueue.Bounds{Total: totalConcurrency, PerHost: hostConcurrency})
	if err != nil {
		return nil, err
	}
	client := &Client{
		requester: requester{
			userAgent: config.UserAgent,
			authentication: authentication{
				credentials: slices.Clone(config.Credentials), realms: realmHosts(config.Realms), tokens: login.NewTokens(), working: newTurns(),
			},
			connections: connections{
				schemes: schemes{
					plain: hostSet(config.plainHosts()), tls: hostSet(config.LoopbackTLS),
					found: memory.New[bool](maxMissing, missingAge),
				},
				loopback: slices.Clone(config.Loopback), transports: newTransports(config, dialer),
			},
			pacing: pacing{timeout: tryTimeout, backoff: firstBackoff, concurrency: concurrency, limiter: ratelimit.New()},
		},
		apis: newAPIs(),
	}
	if client.userAgent == "" {
		client.userAgent = "quaymaster"
	}
	for _, option := range options {
		if err := option(client); err != nil {
			return nil, err
		}
	}
	return client, nil
}

func (c Config) check() error {
	for i, source := range c.Credentials {
		if source.Name == "" || source.Keychain == nil {
			return fmt.Errorf("registry client: credential source %d: want a name and a keychain", i)
		}
	}
	hosts := slices.Concat(c.PlainHTTP, c.LoopbackTLS, c.Loopback, slices.Collect(maps.Keys(c.Hosts)))
	for _, host := range hosts {
		if host == "" || strings.ContainsAny(host, "/@ ") {
			return fmt.Errorf("registry client: %q is not a host; write host or host:port without scheme and path", host)
		}
	}
	for _, host := range c.LoopbackTLS {
		if slices.Contains(c.plainHosts(), host) {
			return fmt.Errorf("registry client: %s is listed both for plain HTTP and for TLS; remove one", host)
		}
	}
	return c.checkHosts()
}

// realmHosts brings the user's table to the names that are asked.
func realmHosts(table map[string][]string) guard.Realms {
	hosts := make(guard.Realms, len(table))
	for registry, realms := range table {
		registry = askedHost(registry)
		for _, realm := range realms {
			hosts[registry] = append(hosts[registry], strings.ToLower(realm))
		}
	}
	return hosts
}

// With returns a Client that shares everything with c and adds the cost of its requests to
// meter.
func (c *Client) With(meter *Meter) *Client {
	metered := *c
	metered.meter = meter
	return &metered
}

// WithCredentials returns a Client that shares connections and limits with c, but uses
// other credentials. It shares neither tokens nor cached answers with c.
func (c *Client) WithCredentials(sources ...Source) (*Client, error) {
	if err := (Config{Credentials: sources}).check(); err != nil {
		return nil, err
	}
	other := *c
	other.credentials = slices.Clone(sources)
	other.from = Provenance{}
	other.tokens, other.working, other.apis = login.NewTokens(), newTurns(), newAPIs()
	return &other, nil
}

// Insecure returns a Client that accepts any certificate, and asks a host without TLS
// support over plain HTTP: the effect of a policy's allowInsecureRegistry. An on-path
// attacker can read credentials and forge answers; digests and signatures are still
// verified. Hosts in Config.Hosts keep their configuration. It shares no token with c, and
// no connection to other hosts.
func (c *Client) Insecure() *Client {
	other := *c
	other.transports = c.transports.insecure()
	other.schemes.bare = memory.New[bool](maxMissing, missingAge)
	other.tokens, other.working, other.apis = login.NewTokens(), newTurns(), newAPIs()
	return &other
}

// Close ends idle connections.
func (c *Client) Close() {
	for _, transport := range c.transports.all() {
		transport.CloseIdleConnections()
	}
}
