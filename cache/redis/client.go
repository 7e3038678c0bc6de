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
	// connections bounds the connections to the server, and so the memory of all replies.
	connections = 8
	// idleTime is the lifetime of an idle connection; one is always kept.
	idleTime = 30 * time.Second
	// bufferBytes is the size of a connection's read and write buffers.
	bufferBytes = 32 << 10
	// attempts is how often a request is sent again over another connection, after the server has
	// closed an idle one.
	attempts = 3
	// slowTime bounds operations without a waiting caller: writing, and connecting in advance.
	slowTime = time.Second
)

var (
	// errUnused refuses the connection that the library opens when the client is made.
	errUnused = errors.New("not connected yet")
	// errBusy means that all connections are in use.
	errBusy = errors.New("all connections to the server are in use")
)

// connectError means that no connection is available.
type connectError struct{ err error }

func (c *connectError) Error() string { return "connect: " + c.err.Error() }
func (c *connectError) Unwrap() error { return c.err }

// newClient configures the library's client so that each request has a connection to itself and
// its caller reads the reply. An unexpected reply then fails a request, where the library's
// shared connections would end the process. The client has no goroutines. Its initial connection,
// for requests that share one, is refused, so that making a client does not wait for the server.
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

// connect opens a connection with bounded replies.
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

// entry is the server's value under a name.
type entry struct {
	sealed []byte
	there  bool
	wrong  Reason // set if there is nothing to open
}

// fetch returns the entries of these names, in their order, in one round trip. It requests only
// the beginning of each, where MGET would return all of it: another client may have stored a
// value larger than any entry.
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

// store writes sealed facts; the error includes those that the server refuses.
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

// refusedError means that the server responds and refuses the write: it is full, or denies
// access.
type refusedError struct {
	count int
	err   error // the first
}

func (r *refusedError) Error() string { return fmt.Sprintf("%d entries refused: %v", r.count, r.err) }
func (r *refusedError) Unwrap() error { return r.err }

// exchange sends commands, which are made anew for each attempt, and returns their replies. Each
// command may be sent twice.
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
		failed = broken(results)
		if failed == nil {
			return results, nil
		}
		if !stale(ctx, failed) {
			break
		}
	}
	return nil, failed
}

// broken returns the reason for missing replies.
func broken(results []rueidis.RedisResult) error {
	for _, result := range results {
		if err := result.NonRedisError(); err != nil {
			return err
		}
	}
	return nil
}

// stale reports whether another connection may succeed.
func stale(ctx context.Context, err error) bool {
	var noConnection *connectError
	_, answered := rueidis.IsRedisErr(err)
	final := answered || errors.As(err, &noConnection) || errors.Is(err, errReply) || errors.Is(err, rueidis.ErrClosing) ||
		errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
	return ctx.Err() == nil && !final
}
