package peers

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/internal/dial"
	"github.com/quaymaster/quaymaster/internal/limit"
)

const (
	// maxMembers bounds the replicas that are queried at once.
	maxMembers = 32
	// restTime is how long an unresponsive replica is skipped.
	restTime = 5 * time.Second
	// idlePerHost keeps connections for concurrent requests.
	idlePerHost = 8
	idleTime    = 90 * time.Second
)

// Members lists the other replicas.
type Members interface {
	// Others returns the host:port of each replica except this one.
	Others() []string
}

// Roots returns the CA certificates that verify the replicas' certificates. They may change; each
// new connection reads them again.
type Roots interface {
	Roots() *x509.CertPool
}

// Config holds the required settings of a Client.
type Config struct {
	// Key is the replicas' shared key, at least 32 random bytes.
	Key     []byte
	Members Members
	Roots   Roots
	// ServerName is the name in the replicas' certificate. Members are addressed by IP.
	ServerName string
}

// Client queries the other replicas. It is safe for concurrent use and implements the gate's Peers.
type Client struct {
	config   Config
	secret   secret
	views    secret
	http     *http.Client
	timeout  time.Duration
	loopback bool
	failed   func(member string, err error)
	now      func() time.Time

	mu      sync.Mutex
	resting map[string]time.Time // until when a member is skipped
}

// Option changes a default of a Client.
type Option func(*Client) error

// WithTimeout bounds one query to all replicas together; 100 ms unless set.
func WithTimeout(d time.Duration) Option {
	return func(c *Client) error {
		if d <= 0 {
			return fmt.Errorf("timeout %s: must be positive", d)
		}
		c.timeout = d
		return nil
	}
}

// WithLoopback also queries members on loopback, for tests and for several replicas on one machine.
func WithLoopback() Option {
	return func(c *Client) error {
		c.loopback = true
		return nil
	}
}

// WithFailures sets a function that receives each failed query to a member, for a log or a metric.
// It must be safe for concurrent use.
func WithFailures(failed func(member string, err error)) Option {
	return func(c *Client) error {
		c.failed = failed
		return nil
	}
}

// WithClock replaces the clock, for tests.
func WithClock(now func() time.Time) Option {
	return func(c *Client) error {
		c.now = now
		return nil
	}
}

// New makes a Client.
func New(config Config, with ...Option) (*Client, error) {
	s, err := newSecret(config.Key, "")
	if err != nil {
		return nil, err
	}
	if config.Members == nil || config.Roots == nil || config.ServerName == "" {
		return nil, errors.New("peers: members, roots and a server name are required")
	}
	c := &Client{config: config, secret: s, views: secret{key: s.key, path: viewPrefix},
		timeout: 100 * time.Millisecond, now: time.Now, resting: map[string]time.Time{}}
	for _, option := range with {
		if err := option(c); err != nil {
			return nil, fmt.Errorf("peers: %w", err)
		}
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			DialTLSContext:      c.connect(dial.New(dial.Config{})),
			MaxIdleConnsPerHost: idlePerHost, IdleConnTimeout: idleTime, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// connect opens a TLS connection with the current roots.
func (c *Client) connect(dialer *dial.Dialer) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		roots := c.config.Roots.Roots()
		if roots == nil { // nil would mean the system's roots
			roots = x509.NewCertPool()
		}
		conn := tls.Client(plain, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: c.config.ServerName})
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = plain.Close()
			return nil, fmt.Errorf("replica %s: %w", address, err)
		}
		return conn, nil
	}
}

// Get implements claims.Peers. It queries all replicas at once. It returns when every key is
// found, all replicas have answered, or the timeout expires. Requests that are still open then
// continue until their own timeout: cancelling one would close its connection, and the next query
// would need a new handshake.
func (c *Client) Get(ctx context.Context, keys []string) map[string][]byte {
	members := c.members()
	if len(members) == 0 || len(keys) == 0 {
		return nil
	}
	keys = fit(keys)
	body, err := json.Marshal(factRequest{Keys: keys})
	if err != nil || len(keys) == 0 || len(body) > maxRequest {
		return nil // a replica would reject it
	}
	waiting, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	answers := make(chan map[string][]byte, len(members))
	for _, member := range members {
		go func() {
			asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout)
			defer cancel()
			facts, err := c.request(asking, member, body)
			if err != nil {
				c.report(member, err) // only the timeout cancels a request
			}
			answers <- facts
		}()
	}
	known := map[string][]byte{}
	for range members {
		select {
		case facts := <-answers:
			merge(known, facts, keys)
		case <-waiting.Done():
			return known
		}
		if len(known) == len(keys) {
			break
		}
	}
	return known
}

// fit drops keys beyond the limits of length and number. The registry provides their evidence.
func fit(keys []string) []string {
	var fitting []string
	for _, key := range keys {
		if len(key) <= MaxKey && len(fitting) < MaxKeys {
			fitting = append(fitting, key)
		}
	}
	return fitting
}

// merge adds the requested facts that are missing.
func merge(known, facts map[string][]byte, keys []string) {
	for key, fact := range facts {
		if _, have := known[key]; !have && len(fact) <= maxFact && slices.Contains(keys, key) {
			known[key] = fact
		}
	}
}

// request requests facts from one member.
func (c *Client) request(ctx context.Context, member string, body []byte) (map[string][]byte, error) {
	var a factResponse
	err := c.send(ctx, c.secret, member+Path, body, &a)
	return a.Facts, err
}

// send posts a request to an endpoint of a member, and decodes the response into a value.
func (c *Client) send(ctx context.Context, s secret, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("request to replica %s: %w", path, err)
	}
	request.Header.Set("Content-Type", "application/json")
	e := headerOf(body, c.now())
	request.Header.Set(questionHeader, e.String())
	request.Header.Set(macHeader, s.requestMAC(e.String()))
	response, err := c.http.Do(request)
	if err != nil {
		return fmt.Errorf("request to replica %s: %w", path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusServiceUnavailable {
		return fmt.Errorf("replica %s: %w", path, errBusy)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("replica %s answered %s", path, response.Status)
	}
	raw, err := limit.ReadAll(response.Body, maxAnswer, "response of a replica")
	if err != nil {
		return fmt.Errorf("response of replica %s: %w", path, err)
	}
	if err := s.openResponse(e.Nonce, raw, response.Header.Get(macHeader), into); err != nil {
		return fmt.Errorf("response of replica %s: %w", path, err)
	}
	return nil
}

// members returns the replicas to query. It skips unresponsive ones and, without WithLoopback,
// loopback addresses.
func (c *Client) members() []string {
	others := c.config.Members.Others()
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for member, until := range c.resting {
		if !now.Before(until) {
			delete(c.resting, member)
		}
	}
	var asked []string
	for _, member := range others {
		host, _, err := net.SplitHostPort(member)
		_, rests := c.resting[member]
		if err != nil || rests || dial.IsLoopbackHost(host) && !c.loopback || slices.Contains(asked, member) {
			continue
		}
		asked = append(asked, member)
		if len(asked) == maxMembers {
			break
		}
	}
	return asked
}

// report records a failure and skips the member for restTime. A busy member is not skipped.
func (c *Client) report(member string, err error) {
	if !errors.Is(err, errBusy) {
		c.mu.Lock()
		c.resting[member] = c.now().Add(restTime)
		c.mu.Unlock()
	}
	if c.failed != nil {
		c.failed(member, err)
	}
}
