package gate

import (
	"context"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/gate/evaluate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/workload"
)

// targetRequest is the pending request of one route for one workload.
type targetRequest struct {
	evaluate.Target

	mu       sync.Mutex
	sessions map[image.Repository]Session
	failed   map[image.Repository]error // sessions that could not be had
}

// opened returns the session for a repository, or the error that prevented it; both are
// nil if no session was requested yet.
func (a *targetRequest) opened(repository image.Repository) (Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sessions[repository], a.failed[repository]
}

// keep keeps the first session for a repository. A failure is kept for the request,
// too: credentials that do not come are waited for once.
func (a *targetRequest) keep(repository image.Repository, session Session, err error) (Session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if known := a.sessions[repository]; known != nil {
		return known, nil
	}
	if err != nil {
		a.failed[repository] = err
		return nil, err
	}
	a.sessions[repository] = target{Session: session, fill: slices.ContainsFunc(a.Route.Candidates, func(c mirror.Candidate) bool {
		return c.Fill && c.Ref.Repository() == repository
	})}
	return a.sessions[repository], nil
}

// target is a session that asks for a digest, too: whether the registry has it. One
// that is to fill itself is asked by GET, as a runtime does: it need not take a HEAD
// for a pull.
type target struct {
	Session
	fill bool
}

// Resolve implements redirect.Session.
func (t target) Resolve(ctx context.Context, ref image.Ref) (image.Pinned, error) {
	if t.fill && ref.Digest().IsZero() {
		descriptor, _, err := t.Manifest(ctx, ref.Repository(), ref.Tag())
		if err != nil {
			return image.Pinned{}, err
		}
		return ref.Pin(descriptor)
	}
	pinned, err := t.Session.Resolve(ctx, ref)
	if err != nil || ref.Digest().IsZero() {
		return pinned, err
	}
	return t.Describe(ctx, pinned)
}

// withSecrets adds the pull secrets that a mirror would give the pod to those of its own
// identity.
func withSecrets(identity workload.Identity, secrets []string) workload.Identity {
	if identity.Namespace != "" {
		identity.PullSecrets = union(identity.PullSecrets, secrets)
	}
	return identity
}

func (a *targetRequest) cost() Cost {
	a.mu.Lock()
	defer a.mu.Unlock()
	total := Cost{RateLimitRemaining: -1}
	for _, session := range a.sessions {
		total = total.Add(session.Cost())
	}
	return total
}

// union appends the elements that are missing, in order.
func union[T comparable](into, more []T) []T {
	into = slices.Clip(into)
	for _, one := range more {
		if !slices.Contains(into, one) {
			into = append(into, one)
		}
	}
	return into
}
