package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/cache"
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

// Bounds of the stale cache.
const (
	// maxGone bounds the negative entries: queries that have no evidence any more.
	maxGone = 50_000
	// maxSilent bounds the repositories recorded as unresponsive.
	maxSilent = 10_000
	// silence is how long an unresponsive repository is skipped by requests that have a stale
	// entry. A registry outage then costs one wait, not one for each pod.
	silence = 10 * time.Second
	// staleShare is the share of the remaining time in which a registry must answer a request
	// that has a stale entry: the rest of the evaluation needs time, too.
	staleShare = 3
)

// lasts is the stale cache.
type lasts struct {
	tags *cache.Cache[tagKey, last]
	// gone is the time at which the registry reported no evidence: facts verified before it
	// are not used.
	gone   *cache.Cache[noneKey, time.Time]
	silent *cache.Cache[silentKey, struct{}]
}

// last is the digest last verified for a tag; none records that the tag was gone, so that
// a snapshot does not restore an older one.
type last struct {
	descriptor image.Descriptor
	at         time.Time
}

func (l last) isGone() bool { return l.descriptor.Digest.IsZero() }

// silentKey names where something is looked for, with some credentials.
type silentKey struct {
	repository     image.Repository
	sources, scope string
}

func newLasts(o options) (*lasts, error) {
	l := &lasts{}
	var err error
	l.tags, err = cache.New(cache.Options[tagKey, last]{MaxCost: maxTags, MaxTTL: policy.MaxStale, Now: o.now})
	if err != nil {
		return nil, err
	}
	l.gone, err = cache.New(cache.Options[noneKey, time.Time]{MaxCost: maxGone, MaxTTL: policy.MaxStale, Now: o.now})
	if err != nil {
		return nil, err
	}
	l.silent, err = cache.New(cache.Options[silentKey, struct{}]{MaxCost: maxSilent, MaxTTL: silence, Now: o.now})
	return l, err
}

// deny records that there is no evidence now, so that facts verified earlier are not used.
func (l *lasts) deny(key noneKey, now time.Time) {
	if l != nil {
		l.gone.Put(key, now, policy.MaxStale)
	}
}

// window is the maximum age of stale entries: the shortest time of the policies involved.
func (w *work) window() time.Duration {
	if w.gate.memory.lasts == nil || w.anew {
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
	known, ok := w.last()
	w.byLast = false
	if !ok {
		return w.resolve(ctx)
	}
	here := silentKey{repository: w.ref.Repository(), scope: w.scope}
	if !w.isSilent(here) {
		brief, done := inBrief(ctx)
		defer done()
		pinned, err := w.resolve(brief)
		if err == nil || !isSilence(err) {
			if err != nil && image.KindOf(err) == image.NotFound {
				w.gate.memory.lasts.tags.Put(w.tagKey(), last{at: w.gate.options.now()}, policy.MaxStale)
			}
			return pinned, err
		}
		w.noteSilence(here)
	}
	w.markStale(known.at)
	w.byLast = true
	return w.ref.Pin(known.descriptor)
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

func (w *work) tagKey() tagKey { return tagKey{scope: w.scope, ref: w.ref.String()} }

// last returns the digest last verified for a tag, if it is not too old. Where a mirror's
// target resolves tags, the mirror configuration decides about its failures.
func (w *work) last() (last, bool) {
	window := w.window()
	if window == 0 || !w.ref.Digest().IsZero() || w.countsTarget() {
		return last{}, false
	}
	known, ok := w.gate.memory.lasts.tags.Get(w.tagKey())
	return known, ok && !known.isGone() && passed(known.at, w.gate.options.now()) < window
}

// keepLast caches the digest of a tag that the registry returned just now, if it is
// verified and no check denies it.
func (w *work) keepLast() {
	if w.gate.memory.lasts == nil || w.err != nil || !w.ref.Digest().IsZero() || w.countsTarget() || !w.staleSince().IsZero() {
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
		w.gate.memory.lasts.tags.Put(w.tagKey(), last{descriptor: w.pinned.Descriptor(), at: w.gate.options.now()}, policy.MaxStale)
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
		return spare && w.isSilent(silentKeyOf(in))
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
			w.noteSilence(silentKeyOf(in))
		}
		w.record(in.key, before.answer)
		w.markOld(in.key)
		w.markStale(before.at)
	}
}

// proofs returns the stale facts of inquiries that are not too old.
func (w *work) proofs(missing []*inquiry) map[*inquiry]proved {
	window := w.window()
	if window == 0 {
		return nil
	}
	known := map[*inquiry]proved{}
	for _, in := range missing {
		if in.place.isLater || in.authority.MaxAge != 0 {
			continue
		}
		now := w.gate.options.now()
		gone, isGone := w.gate.memory.lasts.gone.Get(in.none)
		before, ok := w.gate.memory.facts.Get(in.fact)
		if ok && (!isGone || gone.Before(before.at)) && isBefore(now, before.until) && passed(before.at, now) < window {
			known[in] = before
		}
	}
	return known
}

// allSilent reports whether no registry answered at all.
func allSilent(gaps []error) bool {
	return len(gaps) > 0 && !slices.ContainsFunc(gaps, func(gap error) bool { return !isSilence(gap) })
}

func silentKeyOf(in *inquiry) silentKey {
	return silentKey{repository: in.none.repository, sources: in.none.sources, scope: in.none.scope}
}

func (w *work) isSilent(key silentKey) bool {
	_, silent := w.gate.memory.lasts.silent.Get(key)
	return silent
}

func (w *work) noteSilence(key silentKey) {
	w.gate.memory.lasts.silent.Put(key, struct{}{}, silence)
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
	answer, _ := w.answers.get(key)
	return answer
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
