package redirect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quaymaster/quaymaster/image"
)

// key identifies a request to a target and its credentials: for the digest of a tag, or
// for the presence of a digest.
type key struct {
	scope      string
	repository image.Repository
	tag        string
	digest     image.Digest // zero if it is the tag that is asked for
}

// String returns the reference that is asked for.
func (k key) String() string {
	if k.digest.IsZero() {
		return k.repository.String() + ":" + k.tag
	}
	return k.repository.String() + "@" + k.digest.String()
}

// fail returns the error of a key after a failed request.
func (k key) fail(kind image.Kind, err error) error {
	return &image.Error{Kind: kind, Op: "ask", On: k.String(), Err: err}
}

// late returns the error of an expired candidate's or request's deadline.
func (k key) late(ctx context.Context) error {
	return k.fail(image.Unavailable, context.Cause(ctx))
}

// known is a cached answer. Failures are not cached.
type known struct {
	descriptor image.Descriptor
	missing    bool
}

func (n known) answer(k key) answer {
	if n.missing {
		return answer{err: k.fail(image.NotFound, errors.New("it was not there a moment ago"))}
	}
	return answer{descriptor: n.descriptor}
}

// answer is the result of a key's request.
type answer struct {
	descriptor image.Descriptor
	err        error
	took       time.Duration
	unknown    bool // cache lookup only, and a miss
}

func (a answer) isMissing() bool { return a.err != nil && image.KindOf(a.err) == image.NotFound }

// opened is a session with its scope.
type opened struct {
	Session
	scope string
}

// open opens a session. A panic in it becomes an error.
func open(ctx context.Context, q Request, repository image.Repository) (s opened, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("internal error, which is a defect: %v", p)
		}
		if err != nil {
			err = fmt.Errorf("credentials for %s: %w", repository, err)
		}
	}()
	s.Session, err = q.Open(ctx, repository)
	if err != nil {
		return opened{}, err
	}
	s.scope = s.Scope()
	return s, nil
}

// restingError reports that a registry is skipped.
type restingError struct{ registry, why string }

// Error implements error.
func (e *restingError) Error() string {
	return e.registry + " did not answer recently, and is not queried: " + e.why
}

// rest returns why a candidate is not asked, or nil.
func (c *Chooser) rest(ref image.Ref) error { return c.restOf(ref.Repository()) }

func (c *Chooser) restOf(repository image.Repository) error {
	if c.health == nil {
		return nil
	}
	if why, resting := c.health.Rest(repository.Registry()); resting {
		return &restingError{registry: repository.Registry(), why: why}
	}
	return nil
}

// request asks a target. Concurrent callers with the same key share one request. It has
// the whole timeout, however little time this caller has: only then may a timeout count
// against the registry, and the answer serves later callers.
func (c *Chooser) request(ctx context.Context, s opened, k key) answer {
	began := c.now()
	descriptor, err := c.flights.Do(ctx, k, func(ctx context.Context) (image.Descriptor, error) {
		return c.query(ctx, s, k)
	})
	if _, sorted := errors.AsType[image.Failure](err); err != nil && !sorted {
		err = k.fail(image.Unavailable, err)
	}
	return answer{descriptor: descriptor, err: err, took: c.now().Sub(began)}
}

// query asks a target, caches its answer, and reports the result to Health. A panic passes
// through, to the flight: it is a defect of this program and not the registry's failure.
func (c *Chooser) query(ctx context.Context, s opened, k key) (image.Descriptor, error) {
	if n, ok := c.known.Get(k); ok { // by work that ended before this began
		got := n.answer(k)
		return got.descriptor, got.err
	}
	ref, err := image.Parse(k.String())
	if err != nil {
		return image.Descriptor{}, k.fail(image.Corrupt, err)
	}
	pinned, err := s.Resolve(ctx, ref)
	got := pinned.Descriptor()
	switch {
	case err != nil:
		if image.KindOf(err) == image.NotFound {
			c.known.Put(k, known{missing: true}, c.ages.missing)
		}
	case got.Digest.IsZero():
		err = k.fail(image.Corrupt, errors.New("it was answered without a digest"))
	case !k.digest.IsZero() && got.Digest != k.digest:
		err = k.fail(image.Corrupt, fmt.Errorf("it was answered with another digest, %s", got.Digest))
	default:
		c.keep(k, got)
	}
	if c.health != nil {
		c.health.Told(k.repository.Registry(), err)
	}
	if err != nil {
		return image.Descriptor{}, err
	}
	return got, nil
}

func (c *Chooser) isCached(k key) bool {
	_, ok := c.known.Get(k)
	return ok
}

// keep caches that a target has a digest, and the digest of its tag.
func (c *Chooser) keep(k key, got image.Descriptor) {
	if k.digest.IsZero() {
		c.known.Put(k, known{descriptor: got}, c.ages.tag)
		k.tag, k.digest = "", got.Digest
	}
	c.known.Put(k, known{descriptor: got}, c.ages.present)
}
