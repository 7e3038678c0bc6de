package redirect

import (
	"context"
	"sync"

	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
)

// Pending is a question that is asked in parallel with the verification of the image: callers that
// need its answer share its requests. It is safe for concurrent use.
type Pending struct {
	Request
	chooser *Chooser

	once  sync.Once
	early *Early

	mu       sync.Mutex
	choosing map[image.Digest]func() Choice
}

// Pending prepares to ask a question.
func (c *Chooser) Pending(q Request) *Pending { return &Pending{Request: q, chooser: c} }

// Begin requests the first target in parallel with other work.
func (p *Pending) Begin(ctx context.Context) {
	p.once.Do(func() { p.early = p.chooser.Begin(ctx, p.Request) })
}

// begun returns the result of Begin, nil if Begin was not called.
func (p *Pending) begun() *Early {
	p.once.Do(func() {})
	return p.early
}

// BeginChoice chooses the target of a digest in parallel with the search for evidence: if a
// target lags behind or does not answer, the other targets are requested meanwhile.
func (p *Pending) BeginChoice(ctx context.Context, digest image.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.choosing[digest] != nil {
		return
	}
	if p.choosing == nil {
		p.choosing = map[image.Digest]func() Choice{}
	}
	done := make(chan struct{})
	var choice Choice
	var err error
	go func() {
		defer close(done)
		err = panics.Catch(func() { choice = p.chooser.Choose(ctx, p.Request, p.begun(), digest) })
	}()
	p.choosing[digest] = func() Choice {
		<-done // Choose heeds ctx
		if err != nil {
			panic(err)
		}
		return choice
	}
}

// Choose returns the target of a digest.
func (p *Pending) Choose(ctx context.Context, digest image.Digest) Choice {
	p.mu.Lock()
	wait := p.choosing[digest]
	p.mu.Unlock()
	if wait != nil {
		return wait()
	}
	return p.chooser.Choose(ctx, p.Request, p.begun(), digest)
}

// Cached returns the target of a digest from the cache alone.
func (p *Pending) Cached(ctx context.Context, digest image.Digest) (choice Choice, known bool) {
	return p.chooser.Remembered(ctx, p.Request, digest)
}

// Resolve returns the digest that the reference resolves to at the first target that answers.
func (p *Pending) Resolve(ctx context.Context) (image.Descriptor, error) {
	found, _, err := p.chooser.Resolve(ctx, p.Request, p.begun())
	return found, err
}
