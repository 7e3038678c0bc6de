package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/quaymaster/quaymaster/internal/dial"
)

const (
	// connections bounds those to the server, and what all replies together may
	// take of memory.
	connections = 8
	// idleTime is how long a connection that nobody uses is kept; one always is.
	idleTime = 30 * time.Second
	// bufferBytes is what a connection reads and writes at once.
	bufferBytes = 32 << 10
	// attempts is how often a request is sent again over another connection, when
	// the server had closed the one that lay ready.
	attempts = 3
	// slowTime bounds what nobody waits for: writing, and connecting beforehand.
	slowTime = time.Second
)

var (
	// errUnused refuses the connection that the library opens when it is made.
	errUnused = errors.New("not connected yet")
	// errBusy says that all connections were in use.
	errBusy = errors.New("all connections to the server are in use")
)

// connectError says that there is no connection to be had now.
type connectError struct{ err error }

func (c *connectError) Error() string { return "connect: " + c.err.Error() }
func (c *connectError) Unwrap() error { return c.err }

// newClient makes the library's client such that each request has a connection to
// itself and is read by who sent it: a reply that the library does not expect then
// fails a request, where its shared connections would end the process. The client
// has no goroutines. What it would open at once, for requests that share a
// connection, is refused, so that making one does not wait for the server.
func newClient(config Config, host string) (rueidis.Client, error) {
	var made atomic.Bool
	dialer := dial.New(dial.Config{})
	option := rueidis.ClientOption{
		InitAddress: []string{config.Address}, ForceSingleClient: true,
		DisableAutoPipelining: true, PipelineMultiplex: -1,
		DisableCache: true, DisableRetry: true, ClientSetInfo: rueidis.DisableClientSetInfo,
		BlockingPoolSize: connections, BlockingPoolMinSize: 1, BlockingPoolCleanup: idleTime,
		ReadBufferEachConn: bufferBytes, WriteBufferEachConn: bufferBytes,
		Dialer:           net.Dialer{Timeout: slowTime, KeepAlive: -1}, // no pings; the guarded dialer has its own
		ConnWriteTimeout: slowTime,
		DialCtxFn: func(ctx context.Context, address string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			if !made.Load() {
				return nil, errUnused
			}
			conn, err := connect(ctx, dialer, config.TLS, host, address)
			if err != nil {
				return nil, &connectError{err}
			}
			return conn, nil
		},
	}
	if config.Password != nil {
		option.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (rueidis.AuthCredentials, error) {
			password, err := config.Password()
			if err != nil {
				return rueidis.AuthCredentials{}, &connectError{fmt.Errorf("password: %w", err)}
			}
			return rueidis.AuthCredentials{Username: config.Username, Password: password}, nil
		}
	}
	client, err := rueidis.NewClient(option)
	if client == nil || !errors.Is(err, errUnused) {
		return nil, fmt.Errorf("new client: %w", err)
	}
	made.Store(true)
	return client, nil
}

// connect opens a connection whose replies are bounded.
func connect(ctx context.Context, dialer *dial.Dialer, how *tls.Config, host, address string) (net.Conn, error) {
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if how == nil {
		return &replies{Conn: conn}, nil
	}
	how = how.Clone()
	if how.ServerName == "" {
		how.ServerName = host
	}
	secured := tls.Client(conn, how)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return &replies{Conn: secured}, nil
}

// entry is what the server has under a name.
type entry struct {
	sealed []byte
	there  bool
	wrong  Reason // set if it is nothing to open
}

// fetch returns the entries of these names, in their order, in one round trip. It
// asks for the beginning of each, where MGET would send all of it: somebody else
// may have put there what is larger than any entry.
func (s *Store) fetch(ctx context.Context, names []string) ([]entry, error) {
	results, err := s.exchange(ctx, func() []rueidis.Completed {
		commands := make([]rueidis.Completed, len(names))
		for i, name := range names {
			commands[i] = s.client.B().Getrange().Key(name).Start(0).End(maxBulk - 1).Build()
		}
		return commands
	})
	if err != nil {
		return nil, err
	}
	entries := make([]entry, len(names))
	for i, result := range results {
		sealed, err := result.AsBytes()
		switch refused, is := rueidis.IsRedisErr(err); {
		case err == nil:
			entries[i] = entry{sealed: sealed, there: len(sealed) > 0}
		case rueidis.IsRedisNil(err):
		case is && wrongType(refused):
			entries[i] = entry{there: true, wrong: WrongType}
		default:
			return nil, fmt.Errorf("ask for entries: %w", err)
		}
	}
	return entries, nil
}

func wrongType(err *rueidis.RedisError) bool {
	const code = "WRONGTYPE"
	text := err.Error()
	return len(text) >= len(code) && text[:len(code)] == code
}

// store writes sealed facts; what the server refuses of them is in the error.
func (s *Store) store(ctx context.Context, facts []sealed) error {
	results, err := s.exchange(ctx, func() []rueidis.Completed {
		commands := make([]rueidis.Completed, len(facts))
		for i, f := range facts {
			commands[i] = s.client.B().Set().Key(f.name).Value(rueidis.BinaryString(f.entry)).PxMilliseconds(f.ttl.Milliseconds()).Build()
		}
		return commands
	})
	if err != nil {
		return err
	}
	var refused []error
	for _, result := range results {
		if err := result.Error(); err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) > 0 {
		return &refusedError{count: len(refused), err: refused[0]}
	}
	return nil
}

// refusedError says that the server answers and does not take what it is given: it
// is full, or does not let us write.
type refusedError struct {
	count int
	err   error // the first
}

func (r *refusedError) Error() string { return fmt.Sprintf("%d entries refused: %v", r.count, r.err) }
func (r *refusedError) Unwrap() error { return r.err }

// exchange sends commands, which are made anew for each attempt, and returns their
// replies. Each command is safe to be sent twice.
func (s *Store) exchange(ctx context.Context, commands func() []rueidis.Completed) ([]rueidis.RedisResult, error) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, errBusy
	}
	var failed error
	for range attempts {
		results := s.client.DoMulti(ctx, commands()...)
		if failed = broken(results); failed == nil {
			return results, nil
		}
		if !stale(ctx, failed) {
			break
		}
	}
	return nil, failed
}

// broken returns why there are no replies.
func broken(results []rueidis.RedisResult) error {
	for _, result := range results {
		if err := result.NonRedisError(); err != nil {
			return err
		}
	}
	return nil
}

// stale says whether another connection may do better.
func stale(ctx context.Context, err error) bool {
	var noConnection *connectError
	_, answered := rueidis.IsRedisErr(err)
	final := answered || errors.As(err, &noConnection) || errors.Is(err, errReply) || errors.Is(err, rueidis.ErrClosing) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
	return ctx.Err() == nil && !final
}
