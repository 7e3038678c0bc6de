package scan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
)

// Pacer opens sessions that limit the rate of requests to registries and skip an unresponsive
// registry for a while. Otherwise each of a round's many images would wait for the timeout.
// Create one with NewPacer.
type Pacer struct {
	of      gate.Registries
	limiter *rate.Limiter
	now     func() time.Time

	mu     sync.Mutex
	silent map[string]silence // by host
}

type silence struct {
	until time.Time
	err   error
}

var _ gate.Registries = (*Pacer)(nil)

// NewPacer creates a Pacer of registries, with so many requests a second, and as many in parallel.
func NewPacer(of gate.Registries, perSecond float64) (*Pacer, error) {
	if of == nil || perSecond <= 0 {
		return nil, errors.New("scan: registries are required, and the rate must be positive")
	}
	return &Pacer{of: of, limiter: rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond))), now: time.Now, silent: map[string]silence{}}, nil
}

// Open implements gate.Registries.
func (c *Pacer) Open(ctx context.Context, access gate.Access, repository image.Repository) (gate.Session, error) {
	session, err := c.of.Open(ctx, access, repository)
	if err != nil {
		return nil, err
	}
	return calmSession{Session: session, pacer: c}, nil
}

// turn waits until a request to a registry is permitted.
func (c *Pacer) turn(ctx context.Context, host string) error {
	c.mu.Lock()
	known, ok := c.silent[host]
	if ok && !c.now().Before(known.until) {
		delete(c.silent, host)
		ok = false
	}
	c.mu.Unlock()
	if ok {
		return fmt.Errorf("%s is left alone until %s: %w", host, known.until.UTC().Format(time.TimeOnly), known.err)
	}
	return c.limiter.Wait(ctx)
}

// heed records an unresponsive registry.
func (c *Pacer) heed(ctx context.Context, host string, err error) {
	if err == nil || ctx.Err() != nil || image.KindOf(err) != image.Unavailable {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.silent) >= maxSilent {
		clear(c.silent)
	}
	c.silent[host] = silence{until: c.now().Add(leftAlone), err: err}
}

// calmSession waits for a permit before each request.
type calmSession struct {
	gate.Session
	pacer *Pacer
}

// asked sends a request to a registry when it is permitted.
func asked[T any](ctx context.Context, c *Pacer, host string, ask func() (T, error)) (T, error) {
	if err := c.turn(ctx, host); err != nil {
		var none T
		return none, err
	}
	answer, err := ask()
	c.heed(ctx, host, err)
	return answer, err
}

// Resolve implements gate.Resolver.
func (s calmSession) Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	return asked(ctx, s.pacer, ref.Repository().Registry(), func() (image.Pinned, error) { return s.Session.Resolve(ctx, ref) })
}

// Describe implements gate.Resolver.
func (s calmSession) Describe(ctx context.Context, pinned image.Pinned) (image.Pinned, error) {
	return asked(ctx, s.pacer, pinned.Repository().Registry(), func() (image.Pinned, error) { return s.Session.Describe(ctx, pinned) })
}

// Manifest implements attest.Fetcher.
func (s calmSession) Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	var body []byte
	found, err := asked(ctx, s.pacer, repository.Registry(), func() (found image.Descriptor, err error) {
		found, body, err = s.Session.Manifest(ctx, repository, reference)
		return found, err
	})
	return found, body, err
}

// Blob implements attest.Fetcher.
func (s calmSession) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, most int64) ([]byte, error) {
	return asked(ctx, s.pacer, repository.Registry(), func() ([]byte, error) { return s.Session.Blob(ctx, repository, blob, most) })
}

// Referrers implements attest.Fetcher.
func (s calmSession) Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	return asked(ctx, s.pacer, repository.Registry(), func() ([]image.Descriptor, error) {
		return s.Session.Referrers(ctx, repository, digest, artifactTypes)
	})
}
