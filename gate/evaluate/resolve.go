package evaluate

import (
	"context"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
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

// resolver resolves one reference.
type resolver struct {
	*Evaluator
	registry Registry
	scope    string // of the registry
	ref      image.Ref
	target   *Target // nil unless the target's answer for the tag counts
	evidence []image.Repository
}

func (r *resolver) isTag() bool { return r.ref.Digest().IsZero() }

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
	return r.Claims.Tags().Resolve(ctx, r.scope, claims.Apart(r.registry, ref.Repository()), ref, r.measured(r.registry.Resolve))
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
