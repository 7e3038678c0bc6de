package attest

import (
	"context"
	"sync"

	"github.com/quaymaster/quaymaster/image"
)

// early is a Fetcher that starts some requests before Find needs them: those for the documents of
// a manifest, and for the manifests of a list, as soon as the manifest or list is available. So
// the rounds of one kind of evidence do not add to those of a slower one. Find selects and orders
// as without it, and gets the result of the pending request, so its result does not depend on
// timing.
type early struct {
	Fetcher
	slots chan struct{} // for concurrent requests, early or not

	running   sync.WaitGroup
	mu        sync.Mutex
	requests  int
	bytes     int64 // by listed sizes
	manifests map[manifestKey]*pending[fetched]
	blobs     map[blobKey]*pending[[]byte]
}

type manifestKey struct {
	repository image.Repository
	reference  string
}

type fetched struct {
	descriptor image.Descriptor
	body       []byte
}

// pending is a request with possibly several waiting callers.
type pending[T any] struct {
	done     chan struct{}
	value    T
	err      error
	panicked any // passed on to a goroutine with a recovering caller
}

func (p *pending[T]) run(request func() (T, error)) {
	defer close(p.done)
	defer func() { p.panicked = recover() }()
	p.value, p.err = request()
}

func (p *pending[T]) result() (T, error) {
	<-p.done // the request honours its context
	if p.panicked != nil {
		panic(p.panicked)
	}
	return p.value, p.err
}

func newEarly(fetcher Fetcher) *early {
	return &early{
		Fetcher: fetcher, slots: make(chan struct{}, parallel),
		manifests: map[manifestKey]*pending[fetched]{}, blobs: map[blobKey]*pending[[]byte]{},
	}
}

// Manifest implements Fetcher.
func (e *early) Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	e.mu.Lock()
	started, ok := e.manifests[manifestKey{repository, reference}]
	e.mu.Unlock()
	if !ok {
		defer e.enter(ctx)()
		return e.Fetcher.Manifest(ctx, repository, reference)
	}
	got, err := started.result()
	return got.descriptor, got.body, err
}

// Blob implements Fetcher. Each blob is requested once: the request of Find and the early one may
// be concurrent.
func (e *early) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, most int64) ([]byte, error) {
	key := blobKey{repository, blob.Digest, blob.Size}
	e.mu.Lock()
	started, ok := e.blobs[key]
	if !ok {
		started = &pending[[]byte]{done: make(chan struct{})}
		e.blobs[key] = started
	}
	e.mu.Unlock()
	if !ok {
		started.run(func() ([]byte, error) { return e.fetchBlob(ctx, repository, blob, most) })
	}
	return started.result()
}

func (e *early) fetchBlob(ctx context.Context, repository image.Repository, blob image.Descriptor, most int64) ([]byte, error) {
	defer e.enter(ctx)()
	return e.Fetcher.Blob(ctx, repository, blob, most)
}

// Referrers implements Fetcher.
func (e *early) Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error) {
	defer e.enter(ctx)()
	return e.Fetcher.Referrers(ctx, repository, digest, artifactTypes)
}

// enter waits for a slot. It returns without one if the context has ended; the request then
// returns that error.
func (e *early) enter(ctx context.Context) (leave func()) {
	select {
	case e.slots <- struct{}{}:
		return func() { <-e.slots }
	case <-ctx.Done():
		return func() {}
	}
}

// afford reports whether another early request fits. Bounded, since a user with push access
// chooses the number of possible requests: Find's own bounds would leave some of them out.
func (e *early) afford(size int64) bool {
	if size <= 0 || size > MaxPayload || e.requests == maxEarly || e.bytes+size > maxEarlyBytes {
		return false
	}
	e.requests++
	e.bytes += size
	return true
}

// startManifest requests the manifest of a referrer, and reports whether it is pending.
func (e *early) startManifest(ctx context.Context, r *referrer) bool {
	key := manifestKey{r.repository, r.listed.Digest.String()}
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, ok := e.manifests[key]; ok {
		return true
	}
	if !e.afford(r.room) {
		return false
	}
	started := &pending[fetched]{done: make(chan struct{})}
	e.manifests[key] = started
	e.running.Go(func() {
		started.run(func() (got fetched, err error) {
			defer e.enter(ctx)()
			got.descriptor, got.body, err = e.Fetcher.Manifest(ctx, key.repository, key.reference)
			return got, err
		})
	})
	return true
}

// startBlobs requests documents.
func (e *early) startBlobs(ctx context.Context, documents []*document) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range documents {
		if _, ok := e.blobs[p.key()]; ok || !e.afford(p.layer.Size) {
			continue
		}
		started := &pending[[]byte]{done: make(chan struct{})}
		e.blobs[p.key()] = started
		e.running.Go(func() {
			started.run(func() ([]byte, error) { return e.fetchBlob(ctx, p.origin.Repository, p.layer, p.layer.Size) })
		})
	}
}

// ahead starts the requests that follow from a place's response. It uses Find's own selection
// rules, in a separate search. Errors and panics are reported later, when Find gets to the place
// on a goroutine with a recovering caller.
func (s *search) ahead(ctx context.Context, p *place) {
	defer func() { _ = recover() }()
	if p.err != nil || len(p.manifest) > MaxPayload {
		return
	}
	probe := &search{fetcher: s.early, subject: s.subject, asked: s.asked}
	probe.collect([]*place{p})
	s.early.startBlobs(ctx, probe.documents)
	for _, r := range probe.reserve(probe.choose(0, p)) {
		if s.early.startManifest(ctx, r) {
			s.early.running.Go(func() { s.aheadOf(ctx, r) })
		}
	}
}

// aheadOf starts the requests that follow from a referrer's manifest.
func (s *search) aheadOf(ctx context.Context, r *referrer) {
	defer func() { _ = recover() }()
	r.fetch(ctx, s)
	if !r.usable() {
		return
	}
	probe := &search{subject: s.subject, asked: s.asked}
	probe.collectReferrers([]*referrer{r})
	s.early.startBlobs(ctx, probe.documents)
}
