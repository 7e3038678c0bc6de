package gate

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
)

// errNotAsked is the gap in a cached answer: its facts may be enough without a lookup.
var errNotAsked = errors.New("memory does not know, and nobody else was asked; this is a defect")

// remember does the part of run that the cache can answer: it needs the digest, and facts
// that meet each check. Run does not repeat its lookups.
func (w *work) remember(ctx context.Context) bool {
	if ctx.Err() != nil || w.asksPlatforms() {
		return false
	}
	pinned, err := w.gate.memory.claims.Tags().Pin(w.tagScope(), w.ref)
	if err != nil || !w.recallData(pinned) {
		return false
	}
	w.pinned = pinned
	for _, q := range w.questions() {
		key := questionKey(pinned.Digest(), q)
		if w.known(key) {
			continue
		}
		answer, ok := w.recall(ctx, pinned, key, q)
		if !ok {
			w.partial = true
			answer.Gaps = []error{errNotAsked}
		}
		w.record(key, answer)
	}
	if !w.judgeRemembered(ctx) {
		w.partial = false // any answer still missing is requested right away
		w.forgetGaps()
		return false
	}
	if w.ref.Digest().IsZero() {
		w.gate.options.asked(claims.LayerTags, true)
	}
	return true
}

// forgetGaps drops every answer with a cache miss as its gap.
func (w *work) forgetGaps() {
	w.mu.Lock()
	defer w.mu.Unlock()
	maps.DeleteFunc(w.answers, func(_ question, a policy.Answer) bool { return slices.Contains(a.Gaps, errNotAsked) })
}

// recall returns cached facts about a digest. It does not wait for keys of an authority
// that were never looked up.
func (w *work) recall(ctx context.Context, pinned image.Pinned, key question, q policy.Question) (policy.Answer, bool) {
	if !w.gate.memory.claims.IsHashed(q.Authority) {
		return policy.Answer{}, false
	}
	authority, hash, err := w.authority(ctx, q.Authority)
	if err != nil || authority.MaxAge < 0 {
		return policy.Answer{}, false
	}
	answer, old, ok := w.gate.memory.claims.Facts(w.claimKey(pinned, hash, q))
	if ok {
		w.gate.options.asked(claims.LayerFacts, true)
	}
	if old {
		w.markOld(key)
	}
	return answer, ok
}

// judgeRemembered reports whether the cached facts suffice for each check. Judges run
// later, on all images together. If a judge does not pass an image with any signature,
// peers and registries are asked then.
func (w *work) judgeRemembered(ctx context.Context) bool {
	_, decided := w.gate.options.begin(ctx, PhaseDecide)
	defer decided()
	w.own = make([]policy.Decision, len(w.checks))
	for i, check := range w.checks {
		if _, decided := policy.Decided(check); decided || check.Judge == nil {
			w.own[i] = decide.Check(check, w.answersFor(w.pinned.Digest()))
			if check.NeedsProof() && w.own[i].Result != policy.Pass {
				return false
			}
			continue
		}
		if check.NeedsProof() && !w.anyFact(check) {
			return false
		}
		w.partial = true
		w.own[i] = policy.Decision{Check: check, Result: policy.Pass}
	}
	return true
}

// anyFact reports whether one of a check's questions has a fact.
func (w *work) anyFact(check *policy.Check) bool {
	answers := w.answersFor(w.pinned.Digest())
	return slices.ContainsFunc(check.Questions(), func(q policy.Question) bool { return len(answers(q).Facts) > 0 })
}
