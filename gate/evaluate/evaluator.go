// Package evaluate evaluates one image reference in steps whose inputs and outputs are values: a
// reference is resolved to a digest, evidence about the digest is found in its repositories,
// claims are verified by the evidence, and the checks of policies are decided by the claims.
// Evidence that could not be read or verified is a gap or a rejection in an answer, and never a
// fact.
package evaluate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/content"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

// Resolver turns a reference into a digest, once per request.
type Resolver interface {
	// Resolve returns the digest that the reference resolves to now, and the manifest metadata
	// that the registry returns with it.
	Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error)
	// Describe adds the manifest's media type and size.
	Describe(ctx context.Context, pinned image.Pinned) (image.Pinned, error)
}

// Registry reads images and evidence with some credentials.
type Registry interface {
	Resolver
	attest.Fetcher
	// Scope names the credentials: registries of equal scopes see the same. It holds
	// no secret.
	Scope() string
}

// Prover is one snapshot of trust with the verifiers bound to it.
type Prover interface {
	verify.Verifier
	// Generation is the hash of the trust content.
	Generation() string
	// Resolve looks up the key bytes of an authority.
	Resolve(ctx context.Context, authority verify.Authority) (verify.Authority, error)
}

// Phase is a measured part of an evaluation.
type Phase string

// The phases.
const (
	PhaseResolve  Phase = "resolve"  // a tag into a digest
	PhaseDiscover Phase = "discover" // evidence about a digest
	PhaseProve    Phase = "prove"    // evidence into facts
	PhaseDecide   Phase = "decide"   // policies on the object, from facts
)

// Observer receives events of evaluations, for metrics and traces. It is called from many
// goroutines.
type Observer interface {
	// Begin is called when a phase begins; the function that it returns is called when the
	// phase ends.
	Begin(ctx context.Context, phase Phase) (context.Context, func())
	claims.Observer
}

// Config configures an Evaluator.
type Config struct {
	Claims   *claims.Cache
	Observer Observer // nil: no notifications
	Now      func() time.Time
	// Parallel is how many manifests of an index are read or verified at once.
	Parallel int
	// Age is how long the content of images is cached.
	Age time.Duration
	// Stale is the maximum age of stale entries, unless a policy sets its own; nil uses none.
	Stale *time.Duration
}

// Evaluator evaluates references for all requests, and caches the content of images, which
// never changes. It is safe for concurrent use.
type Evaluator struct {
	Config
	contentCache *content.Cache
}

// New makes an Evaluator.
func New(config Config) (*Evaluator, error) {
	if config.Claims == nil || config.Now == nil || config.Parallel < 1 {
		return nil, errors.New("evaluate: Claims and Now must not be nil, and Parallel at least 1")
	}
	kept, err := content.NewCache(config.Age, config.Now)
	if err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	return &Evaluator{Config: config, contentCache: kept}, nil
}

// Begin notifies the observer that a phase begins.
func (e *Evaluator) Begin(ctx context.Context, phase Phase) (context.Context, func()) {
	if e.Observer == nil {
		return ctx, func() {}
	}
	return e.Observer.Begin(ctx, phase)
}

// hit notifies the observer of a cache hit.
func (e *Evaluator) hit(layer claims.Layer) {
	if e.Observer != nil {
		e.Observer.Asked(layer, true)
	}
}
