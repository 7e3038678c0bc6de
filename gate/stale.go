package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// WithStale lets verified results be used beyond their age where a registry does not
// answer: the last digest verified for a tag, with the same credentials, and the facts of
// a digest. Age is the maximum, unless a policy sets its own (policy.StaleIfError): from
// zero to policy.MaxStale. A stale entry only allows and never denies. A registry's
// answer, whatever it is, overrides stale entries. Without this option none are kept.
func WithStale(age time.Duration) Option {
	return func(o *options) error {
		if age < 0 || age > policy.MaxStale {
			return fmt.Errorf("stale %s: want from nothing to %s", age, policy.MaxStale)
		}
		o.stale, o.keeps = age, true
		return nil
	}
}

// keptFor is how long a fact is kept at most for when a registry does not answer.
func (o *options) keptFor() time.Duration {
	if o.keeps {
		return policy.MaxStale
	}
	return 0
}

// staleShare is the share of the remaining time in which a registry must answer a request
// that has a stale entry: the rest of the evaluation needs time, too.
const staleShare = 3

// window is the maximum age of stale entries: the shortest time of the policies involved.
func (w *work) window() time.Duration {
	if !w.gate.options.keeps || w.anew {
		return 0
	}
	if len(w.checks) == 0 { // no verification required; the registry alone resolves the tag
		return 0
	}
	window := policy.MaxStale
	for _, check := range w.checks {
		own := w.gate.options.stale
		if check.Policy != nil && check.Policy.StaleIfError != nil {
			own = *check.Policy.StaleIfError
		}
		window = min(window, own)
	}
	return window
}

// resolveOrLast resolves the reference, or uses the digest last verified for its tag where
// the registry does not answer.
func (w *work) resolveOrLast(ctx context.Context) (image.Pinned, error) {
	last, ok := w.last()
	w.byLast = false
	if !ok {
		return w.resolve(ctx)
	}
	here := claims.Location{Repository: w.ref.Repository(), Scope: w.scope}
	known := w.gate.memory.claims
	if !known.IsSilent(here) {
		brief, done := inBrief(ctx)
		defer done()
		pinned, err := w.resolve(brief)
		if err == nil || !deadline.IsUnresponsive(err) {
			if err != nil && image.KindOf(err) == image.NotFound {
				known.Tags().Keep(w.tagKey(), image.Descriptor{})
			}
			return pinned, err
		}
		known.NoteSilence(here)
	}
	w.markStale(last.At)
	w.byLast = true
	return w.ref.Pin(last.Descriptor)
}

// pinsLast withdraws a pass by a tag's stale digest where the tag is not replaced: the
// runtime resolves the tag at the registry itself, and may get another digest. The pods of
// a template are evaluated when they are created.
func (p *planned) pinsLast(check *policy.Check, t task, decision policy.Decision) policy.Decision {
	if decision.Result != policy.Pass || t.work == nil || !t.work.byLast || !check.NeedsProof() {
		return decision
	}
	written := asWritten(check.Image)
	pinning := p.pinningOf(check)
	if pinning == PinHere && !written.Ambiguous && !p.isTransformed(written) || pinning == PinLater && !p.subject.Bare {
		return decision
	}
	reason := policy.LookReason(&image.Error{Kind: image.Unavailable, Op: "resolve", On: written.Ref.String(), Err: errLast}, check.Entry)
	reason.Hint = "name the image by digest, or try again when the registry answers"
	return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{reason}}
}

var errLast = errors.New("the registry does not answer, and the tag cannot be pinned here to the digest that it was last proved by")

// pinLast pins a tag to the digest last verified for it, independent of the policies'
// pinning.
func (p *planned) pinLast(v *Verdict) {
	if v.Result != Allow || v.Pin || !p.canPin(v) {
		return
	}
	v.Pin = true
	v.Reasons = append(v.Reasons, policy.Reason{
		Code: policy.DigestPinned, Message: "pinned, since the registry does not answer and may have moved the tag since it was proved",
	})
}

func (w *work) tagKey() claims.Tag { return claims.Tag{Scope: w.scope, Reference: w.ref.String()} }

// last returns the digest last verified for a tag, if it is not too old. Where a mirror's
// target resolves tags, the mirror configuration decides about its failures.
func (w *work) last() (claims.Verified, bool) {
	window := w.window()
	if window == 0 || !w.ref.Digest().IsZero() || w.countsTarget() {
		return claims.Verified{}, false
	}
	return w.gate.memory.claims.Tags().Stale(w.tagKey(), window)
}

// keepLast caches the digest of a tag that the registry returned just now, if it is
// verified and no check denies it.
func (w *work) keepLast() {
	if !w.gate.options.keeps || w.err != nil || !w.ref.Digest().IsZero() || w.countsTarget() || !w.staleSince().IsZero() {
		return
	}
	proves := false
	for i, check := range w.checks {
		switch result := w.decide(i).Result; {
		case result == policy.Pass:
			proves = proves || check.NeedsProof()
		case result != policy.Skipped && !check.Action.Admits():
			return
		}
	}
	if proves {
		w.gate.memory.claims.Tags().Keep(w.tagKey(), w.pinned.Descriptor())
	}
}

// seekOrLast searches for evidence, and uses stale facts where the registry does not
// answer.
func (w *work) seekOrLast(ctx context.Context, pinned image.Pinned, missing []*inquiry) {
	known := w.proofs(missing)
	if len(known) == 0 {
		w.seek(ctx, pinned, missing)
		return
	}
	rest := slices.DeleteFunc(slices.Clone(missing), func(in *inquiry) bool {
		_, spare := known[in]
		return spare && w.gate.memory.claims.IsSilent(in.query.Location())
	})
	if len(rest) > 0 {
		brief, done := inBrief(ctx)
		w.seek(brief, pinned, rest)
		done()
	}
	for in, before := range known {
		if slices.Contains(rest, in) {
			if answer := w.answerTo(in.key); len(answer.Facts) > 0 || !allSilent(answer.Gaps) {
				continue
			}
			w.gate.memory.claims.NoteSilence(in.query.Location())
		}
		w.record(in.key, before.Answer)
		w.markOld(in.key)
		w.markStale(before.At)
	}
}

// proofs returns the stale facts of inquiries that are not too old.
func (w *work) proofs(missing []*inquiry) map[*inquiry]claims.Entry {
	window := w.window()
	if window == 0 {
		return nil
	}
	known := map[*inquiry]claims.Entry{}
	for _, in := range missing {
		if before, ok := w.gate.memory.claims.Stale(in.query, window); ok {
			known[in] = before
		}
	}
	return known
}

// allSilent reports whether no registry answered at all.
func allSilent(gaps []error) bool {
	return len(gaps) > 0 && !slices.ContainsFunc(gaps, func(gap error) bool { return !deadline.IsUnresponsive(gap) })
}

// inBrief leaves time for going on without an answer.
func inBrief(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Until(deadline)/staleShare)
	}
	return context.WithCancel(ctx)
}

// answerTo returns the answer so far.
func (w *work) answerTo(key question) policy.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.answers[key]
}

// markStale records the verification time of a stale fact that is used.
func (w *work) markStale(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stale = earlier(w.stale, at)
}

func (w *work) staleSince() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stale
}

// earlier returns the earlier of two times; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// staleReason is the reason that reports use of a stale entry.
func staleReason(age time.Duration) policy.Reason {
	return policy.Reason{
		Code:    policy.Stale,
		Message: "the registry does not answer; what was proved " + max(0, age).Round(time.Second).String() + " ago is used",
	}
}
