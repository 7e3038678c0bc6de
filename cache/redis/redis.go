package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Bounds on entries and requests.
const (
	// MaxKeys bounds the keys of one request: more than one image of any known policy needs.
	MaxKeys = 64
	// MaxKey bounds a key in bytes. A key is two hashes, a digest, and a predicate type, which is
	// a URL: a few hundred bytes in all.
	MaxKey = 1 << 10
	// MaxValue bounds a value in bytes: the largest shared statement.
	MaxValue = 1 << 20
	// maxPrefix bounds Config's prefix, which is part of each entry's name.
	maxPrefix = 64
)

// Defaults of the options.
const (
	defaultPrefix  = "quaymaster:"
	defaultTimeout = 50 * time.Millisecond
	defaultMaxTTL  = 24 * time.Hour
	// maxTimeout keeps a Get well below any admission budget.
	maxTimeout = 2 * time.Second
	// maxMaxTTL bounds the lifetime of entries.
	maxMaxTTL = 30 * 24 * time.Hour
)

// Config holds the required settings of a Store.
type Config struct {
	// Address is the server's host:port. A loopback address is permitted only if the host is
	// itself one (localhost, 127.0.0.1).
	Address string
	// Username is the user name at the server; empty means its default user.
	Username string
	// Password returns the password; it is called for each new connection, so that the password
	// may change, and must be quick. nil means that there is none.
	Password func() (string, error)
	// TLS is the server's TLS configuration; nil means a plain connection, over which a password
	// is sent unencrypted. An empty ServerName means the host of Address.
	TLS *tls.Config
	// Keys returns the replicas' key, of at least 32 random bytes, and at most two former keys
	// with entries that are still accepted. It is called for each use and must be quick.
	Keys func() (current []byte, former [][]byte)
}

// Store is a cache that replicas share. It is safe for concurrent use, and implements a gate's
// Store. Make one with New.
type Store struct {
	client   rueidis.Client
	slots    chan struct{} // one for each connection
	prefix   string
	timeout  time.Duration
	maxTTL   time.Duration
	observer Observer
	now      func() time.Time
	ring     *ring
	breaker  *breaker
	queue    *queue

	closing sync.Once
	stop    chan struct{} // closed by Close
	stopped chan struct{} // closed when the writer has ended
}

// Option changes a default of a Store.
type Option func(*Store) error

// WithPrefix sets the prefix of each entry's name, for a server with other users; "quaymaster:"
// unless set. Letters, digits and - _ . : / are allowed, at most 64.
func WithPrefix(prefix string) Option {
	return func(s *Store) error {
		if prefix == "" || len(prefix) > maxPrefix || strings.ContainsFunc(prefix, foreignToPrefix) {
			return fmt.Errorf("prefix %q: want 1 to %d letters, digits and - _ . : /", prefix, maxPrefix)
		}
		s.prefix = prefix
		return nil
	}
}

// foreignToPrefix finds characters with a meaning in the pattern of an ACL, or in a cluster.
func foreignToPrefix(r rune) bool {
	own := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.:/", r)
	return !own
}

// WithTimeout bounds a Get, with connecting; 50 ms unless set, at most 2 s.
func WithTimeout(d time.Duration) Option {
	return func(s *Store) error {
		if d <= 0 || d > maxTimeout {
			return fmt.Errorf("timeout %s must be positive and at most %s", d, maxTimeout)
		}
		s.timeout = d
		return nil
	}
}

// WithMaxTTL bounds the lifetime of each entry, from any writer; 24 h unless set, at most 30
// days.
func WithMaxTTL(d time.Duration) Option {
	return func(s *Store) error {
		if d <= 0 || d > maxMaxTTL {
			return fmt.Errorf("maximum life %s must be positive and at most %s", d, maxMaxTTL)
		}
		s.maxTTL = d
		return nil
	}
}

// WithObserver sets an observer of the cache's events; none unless set.
func WithObserver(observer Observer) Option {
	return func(s *Store) error {
		if observer == nil {
			return errors.New("observer: want one")
		}
		s.observer = observer
		return nil
	}
}

// WithClock replaces the clock, for tests.
func WithClock(now func() time.Time) Option {
	return func(s *Store) error {
		if now == nil {
			return errors.New("clock: want one")
		}
		s.now = now
		return nil
	}
}

// New makes a Store, which must be closed. It does not connect, so that a server outage does not
// prevent a start.
func New(config Config, with ...Option) (*Store, error) {
	s := &Store{
		slots: make(chan struct{}, connections), prefix: defaultPrefix, timeout: defaultTimeout, maxTTL: defaultMaxTTL,
		observer: none{}, now: time.Now, queue: newQueue(),
		stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	for _, option := range with {
		if err := option(s); err != nil {
			return nil, fmt.Errorf("shared cache: %w", err)
		}
	}
	host, err := config.check()
	if err != nil {
		return nil, fmt.Errorf("shared cache: %w", err)
	}
	s.ring = &ring{keys: config.Keys}
	if _, err := s.ring.get(); err != nil {
		return nil, fmt.Errorf("shared cache: %w: %w", errKeys, err)
	}
	s.client, err = newClient(config, host)
	if err != nil {
		return nil, fmt.Errorf("shared cache at %s: %w", config.Address, err)
	}
	s.breaker = newBreaker(time.Now) // a replaced clock has no timers
	go s.runWriter()
	return s, nil
}

// check refuses invalid settings, and returns the host of the address.
func (c Config) check() (string, error) {
	host, port, err := net.SplitHostPort(c.Address)
	if err != nil {
		return "", fmt.Errorf("address: %w", err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || n == 0 {
		return "", fmt.Errorf("address %q: want host:port", c.Address)
	}
	if c.Username != "" && c.Password == nil {
		return "", fmt.Errorf("user name %q without a password", c.Username)
	}
	if c.TLS != nil && c.TLS.InsecureSkipVerify {
		return "", errors.New("refusing TLS without certificate verification: the password would be sent to an unverified server")
	}
	if c.Keys == nil {
		return "", errors.New("want the replicas' keys")
	}
	return host, nil
}

// Status returns the state of the server.
func (s *Store) Status() Status { return s.breaker.state() }

// Get implements claims.Store: it requests all keys from the server in one round trip, within
// the timeout. Absent, rejected and unavailable entries are not in the result, nor are keys
// beyond MaxKeys or longer than MaxKey.
func (s *Store) Get(ctx context.Context, keys []string) (known map[string][]byte) {
	defer s.contain(OpGet, func(err error) {
		known = nil
		s.markUnavailable(err)
	})
	keys = fit(keys)
	if _, unavailable := s.breaker.remaining(); unavailable || len(keys) == 0 || s.closed() {
		return nil
	}
	sealers, err := s.ring.get()
	if err != nil {
		s.fail(OpGet, fmt.Errorf("%w: %w", errKeys, err), false)
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	entries, err := s.fetch(bounded, names(sealers, s.prefix, keys))
	if err != nil {
		if !gone(ctx) && !errors.Is(err, errBusy) { // otherwise the server is not at fault
			s.fail(OpGet, err, true)
		}
		return nil
	}
	s.breaker.responded()
	known = s.openAll(sealers, keys, entries)
	s.observer.Requested(len(keys), len(known))
	return known
}

// gone reports whether the caller has stopped waiting. A connection reports a deadline slightly
// before the context does.
func gone(ctx context.Context) bool {
	deadline, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(deadline)
}

// openAll opens the entries, which are those of all keys under each sealer in turn, and returns
// the valid values.
func (s *Store) openAll(sealers []*sealer, keys []string, entries []entry) map[string][]byte {
	known := make(map[string][]byte, len(keys))
	now := s.now()
	for i, e := range entries {
		key := keys[i%len(keys)]
		if _, have := known[key]; have || !e.there {
			continue
		}
		why := e.wrong
		if why == "" {
			var value []byte
			value, why = sealers[i/len(keys)].open(key, e.sealed, now, s.maxTTL)
			if why == "" {
				known[key] = value
				continue
			}
		}
		s.observer.Rejected(why)
	}
	return known
}

// names returns the entries' names of the keys, under each sealer in turn.
func names(sealers []*sealer, prefix string, keys []string) []string {
	all := make([]string, 0, len(sealers)*len(keys))
	for _, sealer := range sealers {
		for _, key := range keys {
			all = append(all, sealer.name(prefix, key))
		}
	}
	return all
}

// fit omits keys that are too long, too many or repeated.
func fit(keys []string) []string {
	fitting := make([]string, 0, min(len(keys), MaxKeys))
	met := make(map[string]bool, cap(fitting))
	for _, key := range keys {
		if len(key) <= MaxKey && !met[key] && len(fitting) < MaxKeys {
			met[key] = true
			fitting = append(fitting, key)
		}
	}
	return fitting
}

// Keep implements claims.Store: it stores value under key for at most ttl, and at most for the
// configured maximum lifetime. It does not wait: the value is queued for writing, and a full
// queue drops its oldest value. A ttl of 0 or less, a key longer than MaxKey and a value of more
// than MaxValue are not stored.
func (s *Store) Keep(key string, value []byte, ttl time.Duration) {
	defer s.contain(OpKeep, s.markUnavailable)
	if ttl <= 0 {
		return
	}
	if len(key) > MaxKey || len(value) > MaxValue || s.closed() {
		s.observer.Dropped(1)
		return
	}
	now := s.now()
	dropped := s.queue.put(fact{key: key, value: append([]byte(nil), value...), written: now, end: now.Add(min(ttl, s.maxTTL))})
	if dropped > 0 {
		s.observer.Dropped(dropped)
	}
}

// Close writes the queue, for at most a second or two, and ends all goroutines of the Store.
// Later, Get returns nothing and Keep stores nothing.
func (s *Store) Close() {
	s.closing.Do(func() { close(s.stop) })
	<-s.stopped
}

func (s *Store) closed() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// fail records a failure. The server is unavailable afterwards if it is at fault.
func (s *Store) fail(op Op, err error, atFault bool) {
	if atFault {
		s.markUnavailable(err)
	} else {
		s.breaker.record(err)
	}
	s.observer.Failed(op)
}

// markUnavailable starts a pause, in which the server is not contacted.
func (s *Store) markUnavailable(err error) {
	s.breaker.open(err)
	s.queue.wake()
}

// contain recovers a panic of the library, or of an observer. It does not call the observer,
// which may be the cause.
func (s *Store) contain(op Op, then func(error)) {
	if r := recover(); r != nil {
		then(fmt.Errorf("%s panicked: %v", op, r))
	}
}
