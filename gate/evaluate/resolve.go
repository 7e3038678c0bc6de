package evaluate

import (
	"context"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/gate/internal/tagdigest"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// Target is the mirror whose targets are asked about a reference.
type Target struct {
	*redirect.Pending
	// Chooses: a target is chosen, and not asked for its digest alone.
	Chooses bool
	// Scope names the mirror and the workload. The scope of the source's credentials does not
	// cover access to a target.
	Scope string
}

// Resolved is the digest of a reference.
type Resolved struct {
	image.Pinned
	// IsStale: the registry does not answer, and Pinned is the digest that was verified for the
	// tag At that time.
	IsStale bool
	At      time.Time
}

// resolver resolves one reference.
type resolver struct {
	*Evaluator
	registry Registry
	scope    string // of the registry
	ref      image.Ref
	target   *Target // nil unless the target's answer for the tag counts
	evidence []image.Repository
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

func (r *resolver) tagKey() claims.Tag {
	return claims.Tag{Scope: r.scope, Reference: r.ref.String()}
}

func (r *resolver) isTag() bool { return r.ref.Digest().IsZero() }

// keep caches a verified digest of the tag; the zero descriptor records that the tag is gone.
func (r *resolver) keep(descriptor image.Descriptor) { r.Claims.Tags().Keep(r.tagKey(), descriptor) }

// tagScope is the scope of the tag's digest: the credentials, and the side that resolves the tag.
func (r *resolver) tagScope() string {
	if r.target == nil {
		return r.scope
	}
	return r.scope + r.target.Scope
}

// cached returns the digest from the cache alone. A target has digests of its own.
func (r *resolver) cached(ctx context.Context) (image.Pinned, error) {
	if r.target != nil {
		return r.Claims.Tags().Pin(r.tagScope(), r.ref)
	}
	return tagdigest.Of(ctx).Verify(r.Claims.Tags().Pin(r.tagScope(), r.ref))
}

func (r *resolver) current(ctx context.Context) (image.Pinned, error) {
	if !r.isTag() {
		return r.ref.Pin(image.Descriptor{Digest: r.ref.Digest()})
	}
	if r.target == nil {
		return tagdigest.Of(ctx).Verify(r.tag(ctx, r.ref))
	}
	return r.atTarget(ctx)
}

// tag returns the digest that a tag of the image's repository resolves to.
func (r *resolver) tag(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	return r.Claims.Tags().Resolve(ctx, r.scope, apart(r.registry, ref.Repository()), ref, r.measured(r.registry.Resolve))
}

// measured notifies the observer of the phase in which a tag is resolved.
func (r *resolver) measured(resolve func(context.Context, image.Ref) (image.Pinned, error)) func(context.Context, image.Ref) (image.Pinned, error) {
	return func(ctx context.Context, ref image.Ref) (image.Pinned, error) {
		ctx, end := r.Begin(ctx, PhaseResolve)
		defer end()
		return resolve(ctx, ref)
	}
}

// atTarget returns the digest that the tag resolves to at the first target that
// answers.
func (r *resolver) atTarget(ctx context.Context) (image.Pinned, error) {
	pinned, err := r.Claims.Tags().Resolve(ctx, r.tagScope(), "", r.ref, r.measured(func(ctx context.Context, ref image.Ref) (image.Pinned, error) {
		found, err := r.target.Resolve(ctx)
		if err != nil {
			return image.Pinned{}, err
		}
		return ref.Pin(found)
	}))
	if err != nil && r.target.Route.Otherwise != mirror.Deny && ctx.Err() == nil {
		return tagdigest.Of(ctx).Verify(r.tag(ctx, r.ref))
	}
	return pinned, err
}

// sourceTime bounds the wait for the source where its digest for the tag is only reported.
const sourceTime = time.Second

// compareSource resolves the tag at the source where a difference is to be reported, and
// returns a function that waits for its digest; zero if there is none.
func (r *resolver) compareSource(ctx context.Context) (wait func() image.Digest) {
	if r.target == nil || !slices.Contains(r.evidence, r.ref.Repository()) {
		return func() image.Digest { return image.Digest{} }
	}
	ctx, cancel := context.WithTimeout(ctx, sourceTime)
	found := make(chan image.Digest, 1)
	go func() {
		defer cancel()
		var pinned image.Pinned
		_ = panics.Catch(func() { pinned, _ = r.tag(ctx, r.ref) })
		found <- pinned.Digest()
	}()
	return func() image.Digest { return <-found } // resolve heeds ctx
}
