package evaluate

import (
	"context"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/internal/tagdigest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// Stale entries are the digest last verified for a tag, and the facts last verified for a claim
// query. They are used while a registry does not answer; any answer replaces them.

// maxStale is the maximum age of stale entries: the shortest time of the policies involved. It is
// zero without checks, since the registry alone resolves the tag then.
func (e *Evaluator) maxStale(checks []*policy.Check) time.Duration {
	if e.Stale == nil || len(checks) == 0 {
		return 0
	}
	window := policy.MaxStale
	for _, check := range checks {
		own := *e.Stale
		if check.Policy != nil && check.Policy.StaleIfError != nil {
			own = *check.Policy.StaleIfError
		}
		window = min(window, own)
	}
	return window
}

// Resolved is the digest of a reference.
type Resolved struct {
	image.Pinned
	// IsStale: the registry does not answer, and Pinned is the digest that was verified for the
	// tag At that time.
	IsStale bool
	At      time.Time
}

// resolve resolves the reference, or uses the digest last verified for its tag, less than window
// ago, where the registry does not answer.
func (r *resolver) resolve(ctx context.Context, window time.Duration) (Resolved, error) {
	last, ok := r.stale(window)
	if !ok {
		pinned, err := r.current(ctx)
		return Resolved{Pinned: pinned}, err
	}
	here := claims.Location{Repository: r.ref.Repository(), Scope: r.scope}
	if !r.Claims.IsSilent(here) {
		brief, done := inBrief(ctx)
		defer done()
		pinned, err := r.current(brief)
		if err == nil || !deadline.IsUnresponsive(err) {
			if err != nil && image.KindOf(err) == image.NotFound {
				r.keep(image.Descriptor{})
			}
			return Resolved{Pinned: pinned}, err
		}
		r.Claims.NoteSilence(here)
	}
	pinned, err := tagdigest.Of(ctx).Verify(r.ref.Pin(last.Descriptor))
	return Resolved{Pinned: pinned, IsStale: true, At: last.At}, err
}

// stale returns the digest last verified for the tag. Where a mirror's target resolves tags, the
// mirror configuration decides about its failures.
func (r *resolver) stale(window time.Duration) (claims.Verified, bool) {
	if window == 0 || !r.isTag() || r.target != nil {
		return claims.Verified{}, false
	}
	return r.Claims.Tags().Stale(r.tagKey(), window)
}

// keep caches a verified digest of the tag; the zero descriptor records that the tag is gone.
func (r *resolver) keep(descriptor image.Descriptor) { r.Claims.Tags().Keep(r.tagKey(), descriptor) }

func (r *resolver) tagKey() claims.Tag { return claims.Tag{Scope: r.scope, Reference: r.ref.String()} }

// markStale records the verification time of a stale entry that is used.
func (a *answers) markStale(key claimQuery, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stale == nil {
		a.stale = map[claimQuery]time.Time{}
	}
	a.stale[key] = at
}

// staleSince returns the verification time of the oldest stale entry in use; zero for none.
func (a *answers) staleSince() (oldest time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, at := range a.stale {
		oldest = claims.Earlier(oldest, at)
	}
	return oldest
}

// staleShare is the share of the remaining time in which a registry must answer where stale entries
// or other repositories may do without it: the rest of the evaluation needs time, too.
const staleShare = 3

// inBrief leaves time for going on without an answer.
func inBrief(ctx context.Context) (context.Context, context.CancelFunc) {
	if end, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(end)/staleShare)
	}
	return context.WithCancel(ctx)
}
