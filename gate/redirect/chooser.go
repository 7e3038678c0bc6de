package redirect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/cache"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// maxKnown bounds the cache, in answers of some 300 bytes: two or three for each image and
// target that a large cluster runs.
const maxKnown = 50_000

// Chooser asks targets. It is safe for concurrent use.
type Chooser struct {
	health  Health        // nil: every target is asked
	timeout time.Duration // for one candidate
	ages    ages
	now     func() time.Time

	known   *cache.Cache[key, known]
	flights *cache.Flight[key, image.Descriptor]
}

// ages are the lifetimes of cached answers.
type ages struct{ present, tag, missing time.Duration }

// Option changes a default of a Chooser.
type Option func(*Chooser) error

// WithHealth skips registries that did not answer recently, and reports the results of
// requests; every target is asked unless set.
func WithHealth(health Health) Option {
	return func(c *Chooser) error {
		if health == nil {
			return errors.New("the health is nil")
		}
		c.health = health
		return nil
	}
}

// WithTimeout bounds the request to one target, 2 s unless set. The wait for a candidate
// is at most that, and at most a third of the request's remaining time; a late answer is
// cached all the same.
func WithTimeout(perCandidate time.Duration) Option {
	return func(c *Chooser) error {
		if perCandidate <= 0 {
			return fmt.Errorf("timeout %s must be positive", perCandidate)
		}
		c.timeout = perCandidate
		return nil
	}
}

// WithAges sets how long the presence of a digest at a target is cached (5 min unless
// set), the digest of its tag (30 s) and the absence of a digest or tag (10 s); 0 caches
// nothing.
func WithAges(present, tag, missing time.Duration) Option {
	return func(c *Chooser) error {
		if min(present, tag, missing) < 0 {
			return fmt.Errorf("ages of %s, %s and %s: want none below 0", present, tag, missing)
		}
		c.ages = ages{present: present, tag: tag, missing: missing}
		return nil
	}
}

// WithClock replaces the clock of the cache and of Attempt.Took, for tests.
func WithClock(now func() time.Time) Option {
	return func(c *Chooser) error {
		if now == nil {
			return errors.New("the clock is nil")
		}
		c.now = now
		return nil
	}
}

// New makes a Chooser.
func New(with ...Option) (*Chooser, error) {
	c := &Chooser{
		timeout: 2 * time.Second, now: time.Now,
		ages: ages{present: 5 * time.Minute, tag: 30 * time.Second, missing: 10 * time.Second},
	}
	for _, option := range with {
		if err := option(c); err != nil {
			return nil, fmt.Errorf("choosing mirrors: %w", err)
		}
	}
	var err error
	c.known, err = cache.New(cache.Options[key, known]{
		MaxCost: maxKnown, MaxTTL: max(c.ages.present, c.ages.tag, c.ages.missing, 1), Now: c.now,
	})
	if err != nil {
		return nil, fmt.Errorf("choosing mirrors: %w", err)
	}
	c.flights, err = cache.NewFlight[key, image.Descriptor](c.timeout)
	if err != nil {
		return nil, fmt.Errorf("choosing mirrors: %w", err)
	}
	return c, nil
}

// Close stops the goroutine that clears the cache. A garbage-collected chooser stops it by
// itself, so only tests that count goroutines need this.
func (c *Chooser) Close() { c.known.Close() }

// Begin asks the first candidate that is not resting, so that its answer is there when the
// digest is known: for the reference's digest, else for its tag, and for the tag first
// where that fills the target. It returns at once, if Open does. It sends no request, and
// returns nil, where the cache suffices or the route requires no request.
func (c *Chooser) Begin(ctx context.Context, q Request) *Early {
	if q.Route == nil || ctx.Err() != nil {
		return nil
	}
	i := slices.IndexFunc(q.Route.Candidates, func(candidate mirror.Candidate) bool { return c.rest(candidate.Ref) == nil })
	if i < 0 {
		return nil
	}
	k, asks := first(q.Route, q.Route.Candidates[i])
	if !asks {
		return nil
	}
	opening, cancel := c.share(ctx)
	defer cancel()
	s, err := open(opening, q, k.repository)
	if err != nil {
		return nil // Choose will find out, and say so
	}
	k.scope = s.scope
	if c.isCached(k) || c.isCached(key{scope: k.scope, repository: k.repository, digest: q.Route.Candidates[i].Ref.Digest()}) {
		return nil
	}
	early := &Early{key: k, began: c.now(), done: make(chan struct{})}
	go func() {
		defer close(early.done)
		ctx, cancel := bound(ctx, c.timeout) // whatever the session heeds
		defer cancel()
		early.answer = c.request(ctx, s, k)
	}()
	return early
}

// first is the key, without its scope, of the request to a candidate that is sent before
// the digest is known.
func first(route *mirror.Route, candidate mirror.Candidate) (k key, asks bool) {
	k = key{repository: candidate.Ref.Repository(), digest: candidate.Ref.Digest()}
	asks = route.When != mirror.Always
	if fills(candidate) || k.digest.IsZero() {
		k.tag, k.digest = candidate.Ref.Tag(), image.Digest{}
		asks = asks || fills(candidate) || candidate.Ref.Digest().IsZero() && route.Resolve == mirror.Target
	}
	return k, asks
}

// Early is a request to the first candidate in parallel with other work.
type Early struct {
	key    key
	began  time.Time
	done   chan struct{} // closed when answer is set
	answer answer
}

// has reports whether e is the answer of a repository, and there.
func (e *Early) has(repository image.Repository) bool {
	if e == nil || e.key.repository != repository {
		return false
	}
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// Choose returns the first candidate that serves the digest; early may be nil. It always
// returns an answer, in time for ctx, if Open does.
//
// A candidate serves a digest if its tag resolves to it, or if it has the digest itself.
// The digest itself is requested where the reference has one, and where the tag resolves
// to another. Where the route is Always, the first candidate that does not rest is chosen
// without a request, or else the first; one that a tag fills is asked for the tag all the
// same, whatever the result.
func (c *Chooser) Choose(ctx context.Context, q Request, early *Early, digest image.Digest) Choice {
	choice, _ := (&round{Chooser: c, Request: q, early: early, digest: digest, asks: true}).choose(ctx)
	return choice
}

// Rest reports that a registry is not asked, since it did not answer a moment ago,
// and why.
func (c *Chooser) Rest(registry string) (why string, resting bool) {
	if c.health == nil {
		return "", false
	}
	return c.health.Rest(registry)
}

// Remembered is Choose from the cache alone, without a request.
func (c *Chooser) Remembered(ctx context.Context, q Request, digest image.Digest) (Choice, bool) {
	return (&round{Chooser: c, Request: q, digest: digest}).choose(ctx)
}

// Resolve returns the digest that the reference resolves to at the first candidate that
// answers; early may be nil. The error holds the cause of each candidate, and is
// image.NotFound only if each of them answered. A reference with a digest resolves to
// that, without a request.
func (c *Chooser) Resolve(ctx context.Context, q Request, early *Early) (image.Descriptor, []Attempt, error) {
	r := &round{Chooser: c, Request: q, early: early, asks: true}
	attempts := r.attempts()
	for i := range attempts {
		if named := attempts[i].Target.Digest(); !named.IsZero() {
			return image.Descriptor{Digest: named}, attempts, nil
		}
		if descriptor := r.resolve(ctx, &attempts[i]); attempts[i].State == Chosen {
			return descriptor, attempts, nil
		}
	}
	return image.Descriptor{}, attempts, unresolved(attempts)
}
