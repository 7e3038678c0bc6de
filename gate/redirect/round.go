package redirect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
)

// round goes through the candidates of one question once.
type round struct {
	*Chooser
	Request
	early  *Early
	digest image.Digest
	asks   bool // else the cache alone
}

// attempts has an entry for each candidate, none of which was asked.
func (r *round) attempts() []Attempt {
	if r.Route == nil {
		return nil
	}
	attempts := make([]Attempt, len(r.Route.Candidates))
	for i, candidate := range r.Route.Candidates {
		attempts[i] = Attempt{Target: candidate.Ref, State: NotAsked}
	}
	return attempts
}

// choose returns the first candidate that serves the digest. Known is false after a miss
// where only the cache is consulted.
func (r *round) choose(ctx context.Context) (choice Choice, known bool) {
	choice.Attempts = r.attempts()
	for i := range choice.Attempts {
		attempt := &choice.Attempts[i]
		pinned, err := attempt.Target.Pin(image.Descriptor{Digest: r.digest})
		if err != nil {
			attempt.fail(err)
			continue
		}
		if !r.look(ctx, r.Route.Candidates[i], attempt) {
			return Choice{}, false
		}
		if attempt.State == Chosen {
			choice.Target = pinned
			return choice, true
		}
	}
	if len(choice.Attempts) > 0 && r.always() && choice.Attempts[0].State == Resting {
		attempt := &choice.Attempts[0]
		attempt.State, attempt.Err = Chosen, nil
		choice.Target, _ = attempt.Target.Pin(image.Descriptor{Digest: r.digest}) // as above
	}
	return choice, true
}

func (r *round) always() bool { return r.Route.When == mirror.Always }

// fills reports whether a request for a tag makes the target pull the image from the
// source.
func fills(candidate mirror.Candidate) bool { return candidate.Fill && candidate.Ref.Tag() != "" }

// look asks one candidate, within its share of the time. Known is as in choose.
func (r *round) look(ctx context.Context, candidate mirror.Candidate, attempt *Attempt) (known bool) {
	repository := attempt.Target.Repository()
	if err := r.rest(attempt.Target); err != nil && !r.early.has(repository) {
		attempt.fail(err)
		return true
	}
	if r.always() && !fills(candidate) {
		attempt.State = Chosen
		return true
	}
	ctx, cancel := r.share(ctx)
	defer cancel()
	s, err := open(ctx, r.Request, repository)
	switch {
	case err != nil && r.always(): // chosen whatever its answer
		attempt.State = Chosen
		return true
	case err != nil && !r.asks:
		return false
	case err != nil:
		attempt.fail(err)
		return true
	}
	return r.ask(ctx, s, candidate, attempt)
}

// ask asks one candidate by its tag, where that may do, and by digest.
func (r *round) ask(ctx context.Context, s opened, candidate mirror.Candidate, attempt *Attempt) (known bool) {
	byDigest := key{scope: s.scope, repository: attempt.Target.Repository(), digest: r.digest}
	byTag := key{scope: s.scope, repository: byDigest.repository, tag: attempt.Target.Tag()}
	if served, ok := r.known.Get(byDigest); ok && !served.missing {
		tag, _ := r.known.Get(byTag)
		attempt.State, attempt.Tag, attempt.Took = Chosen, tag.descriptor.Digest, r.tookEarly(byTag, byDigest)
		return true
	}
	if fills(candidate) || byTag.tag != "" && attempt.Target.Digest().IsZero() {
		got := r.answer(ctx, s, byTag)
		attempt.Took, attempt.Tag = got.took, got.descriptor.Digest
		switch {
		case got.unknown:
			return false
		case r.always() || attempt.Tag == r.digest:
			attempt.State = Chosen
			return true
		case got.err != nil && !got.isMissing():
			attempt.fail(got.err)
			return true
		}
	}
	got := r.answer(ctx, s, byDigest)
	attempt.Took += got.took
	attempt.conclude(got)
	return !got.unknown
}

// resolve asks a candidate for the digest of its tag.
func (r *round) resolve(ctx context.Context, attempt *Attempt) image.Descriptor {
	k := key{repository: attempt.Target.Repository(), tag: attempt.Target.Tag()}
	if err := r.rest(attempt.Target); err != nil && !r.early.has(k.repository) {
		attempt.fail(err)
		return image.Descriptor{}
	}
	ctx, cancel := r.share(ctx)
	defer cancel()
	s, err := open(ctx, r.Request, k.repository)
	if err != nil {
		attempt.fail(err)
		return image.Descriptor{}
	}
	k.scope = s.scope
	got := r.answer(ctx, s, k)
	attempt.Took, attempt.Tag = got.took, got.descriptor.Digest
	attempt.conclude(got)
	return got.descriptor
}

// answer answers a key from earlier requests, the cache, or a new request.
func (r *round) answer(ctx context.Context, s opened, k key) answer {
	if r.early != nil && r.early.key == k {
		return r.await(ctx)
	}
	if known, ok := r.known.Get(k); ok {
		return known.answer(k)
	}
	if !r.asks {
		return answer{unknown: true}
	}
	if err := r.restOf(k.repository); err != nil {
		return answer{err: err}
	}
	if ctx.Err() != nil {
		return answer{err: k.late(ctx)}
	}
	return r.request(ctx, s, k)
}

// await takes the early answer. The wait is bounded as for any request.
func (r *round) await(ctx context.Context) answer {
	select {
	case <-r.early.done: // even if there is no time left
		return r.early.answer
	default:
	}
	select {
	case <-r.early.done:
		return r.early.answer
	case <-ctx.Done():
		return answer{err: r.early.key.late(ctx), took: r.now().Sub(r.early.began)}
	}
}

// tookEarly is the duration of the early request, if it was for one of the keys: the cache
// may hold its answer a moment before the request returns.
func (r *round) tookEarly(keys ...key) time.Duration {
	switch {
	case r.early == nil || !slices.Contains(keys, r.early.key):
		return 0
	case r.early.has(r.early.key.repository):
		return r.early.answer.took
	}
	return r.now().Sub(r.early.began)
}

// share bounds the time for one candidate.
func (c *Chooser) share(ctx context.Context) (context.Context, context.CancelFunc) {
	share := c.timeout
	if deadline, ok := ctx.Deadline(); ok {
		share = max(0, min(share, time.Until(deadline)/3))
	}
	return bound(ctx, share)
}

// bound limits a wait; its error reports the limit.
func bound(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, most, unanswered(most))
}

// unanswered is the duration of a wait without an answer. It is formatted only on demand:
// most waits end well.
type unanswered time.Duration

// Error implements error.
func (u unanswered) Error() string {
	return fmt.Sprintf("no answer within %s: %v", time.Duration(u).Round(time.Millisecond), context.DeadlineExceeded)
}

// Unwrap marks the error as a deadline.
func (unanswered) Unwrap() error { return context.DeadlineExceeded }

// conclude sets the state that an answer by itself leads to.
func (a *Attempt) conclude(got answer) {
	switch {
	case got.err == nil:
		a.State = Chosen
	case got.isMissing() && !a.Tag.IsZero():
		a.State, a.Err = Differs, got.err
	case got.isMissing():
		a.State, a.Err = Missing, got.err
	default:
		a.fail(got.err)
	}
}

// fail records that the candidate could not be queried, or rests.
func (a *Attempt) fail(err error) {
	a.State, a.Err = Failed, err
	if _, resting := errors.AsType[*restingError](err); resting {
		a.State = Resting
	}
}

// unresolved returns the error for a tag that no candidate resolves. It holds the causes
// as text: none of them alone is the reason.
func unresolved(attempts []Attempt) error {
	failure := &image.Error{Kind: image.NotFound, Op: "resolve"}
	var names, causes []string
	for _, attempt := range attempts {
		names = append(names, attempt.Target.String())
		causes = append(causes, attempt.Err.Error())
		if attempt.State != Missing {
			failure.Kind = image.Unavailable
		}
	}
	failure.On, failure.Err = strings.Join(names, ", "), errors.New(strings.Join(causes, "; "))
	if len(attempts) == 0 {
		failure.Kind, failure.On, failure.Err = image.Unavailable, "at a mirror", errors.New("there is no candidate")
	}
	return failure
}
