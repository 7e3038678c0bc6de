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

// maxKnown bounds the memory, in answers of some 300 bytes: two or three for each
// image and target that a large cluster runs.
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

// ages are how long answers are remembered.
type ages struct{ present, tag, missing time.Duration }

// Option changes a default of a Chooser.
type Option func(*Chooser) error

// WithHealth leaves registries that did not answer alone, and tells how asking
// them ended; every target is asked unless set.
func WithHealth(health Health) Option {
	return func(c *Chooser) error {
		if health == nil {
			return errors.New("the health is nil")
		}
		c.health = health
		return nil
	}
}

// WithTimeout bounds the question to one target, 2 s unless set. A candidate is
// waited for no longer than that, nor than a third of what is left of the
// request's time; its answer comes to memory in either case.
func WithTimeout(perCandidate time.Duration) Option {
	return func(c *Chooser) error {
		if perCandidate <= 0 {
			return fmt.Errorf("a timeout of %s: want more than nothing", perCandidate)
		}
		c.timeout = perCandidate
		return nil
	}
}

// WithAges sets how long it is remembered that a target has a digest (5 min unless
// set), what its tag stands for (30 s) and that it has not what was asked for
// (10 s); 0 remembers nothing.
func WithAges(present, tag, missing time.Duration) Option {
	return func(c *Chooser) error {
		if min(present, tag, missing) < 0 {
			return fmt.Errorf("ages of %s, %s and %s: want none below 0", present, tag, missing)
		}
		c.ages = ages{present: present, tag: tag, missing: missing}
		return nil
	}
}

// WithClock replaces the clock of the memory and of Attempt.Took, for tests.
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
	if c.known, err = cache.New(cache.Options[key, known]{
		MaxCost: maxKnown, MaxTTL: max(c.ages.present, c.ages.tag, c.ages.missing, 1), Now: c.now,
	}); err != nil {
		return nil, fmt.Errorf("choosing mirrors: %w", err)
	}
	if c.flights, err = cache.NewFlight[key, image.Descriptor](c.timeout); err != nil {
		return nil, fmt.Errorf("choosing mirrors: %w", err)
	}
	return c, nil
}

// Close stops the goroutine that clears the memory. A chooser that is garbage stops
// it by itself, so only tests that count goroutines need this.
func (c *Chooser) Close() { c.known.Close() }

// Begin asks the first candidate that is not resting, so that its answer is there
// when the digest is known: for the reference's digest, else for its tag, and for
// the tag first where that fills the target. It returns at once, if Open does.
// Nothing is asked, and nil returned, where memory will do or the route asks
// nothing.
func (c *Chooser) Begin(ctx context.Context, q Question) *Early {
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
	if c.remembers(k) || c.remembers(key{scope: k.scope, repository: k.repository, digest: q.Route.Candidates[i].Ref.Digest()}) {
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

// first is the key, but for its scope, of what a candidate is asked before it is
// known which digest counts.
func first(route *mirror.Route, candidate mirror.Candidate) (k key, asks bool) {
	k = key{repository: candidate.Ref.Repository(), digest: candidate.Ref.Digest()}
	asks = route.When != mirror.Always
	if fills(candidate) || k.digest.IsZero() {
		k.tag, k.digest = candidate.Ref.Tag(), image.Digest{}
		asks = asks || fills(candidate) || candidate.Ref.Digest().IsZero() && route.Resolve == mirror.Target
	}
	return k, asks
}

// Early is the first candidate being asked beside whatever else goes on.
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

// Choose returns the first candidate that serves the digest; early may be nil. It
// always answers, in time for ctx, if Open does.
//
// A candidate serves a digest if its tag stands for it, or if it says so when it is
// asked for the digest itself: which it is where the reference has one, and where
// its tag stands for another. Where the route is Always, the first candidate that
// does not rest is chosen unasked, or else the first; one that a tag fills is asked
// for the tag all the same, whatever comes of it.
func (c *Chooser) Choose(ctx context.Context, q Question, early *Early, digest image.Digest) Choice {
	choice, _ := (&round{Chooser: c, Question: q, early: early, digest: digest, asks: true}).choose(ctx)
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

// Remembered is Choose as far as memory knows, without asking anybody.
func (c *Chooser) Remembered(ctx context.Context, q Question, digest image.Digest) (Choice, bool) {
	return (&round{Chooser: c, Question: q, digest: digest}).choose(ctx)
}

// Resolve returns the digest that the reference stands for at the first candidate
// that answers; early may be nil. An error says why no candidate does, and is
// image.NotFound only if each of them answered. A reference with a digest stands
// for that, and nobody is asked.
func (c *Chooser) Resolve(ctx context.Context, q Question, early *Early) (image.Descriptor, []Attempt, error) {
	r := &round{Chooser: c, Question: q, early: early, asks: true}
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
