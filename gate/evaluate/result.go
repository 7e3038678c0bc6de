package evaluate

import (
	"context"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate/content"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/verify"
)

// Result is what an evaluation found out about its reference.
type Result struct {
	Pinned image.Pinned
	Err    error // why there is no digest
	// IsStale: the digest comes from the tag's stale entry.
	IsStale bool
	// IsPartial: the cache alone answered, incompletely or for judges that have not run yet.
	IsPartial bool
	// Source is the source tag's digest, where it is only reported.
	Source   image.Digest
	Duration time.Duration

	data    policy.ImageData // if a check requires it
	dataErr error

	checks   []*policy.Check
	answers  *answers
	own      []policy.Decision // of the checks, by the named digest
	children content.Index     // of the named digest, where a policy selects platforms
	parent   content.Index     // the index that lists the named digest
	byParent []policy.Decision // of the checks, by parent; none where it was not asked or does not count
	isAtTag  bool              // the tag of a reference with a digest resolves to that digest
}

// markLate marks everything that the request's deadline cut short.
func (r *Result) markLate(ctx context.Context) {
	r.Err, r.children.Err, r.parent.Err = deadline.Mark(ctx, r.Err), deadline.Mark(ctx, r.children.Err), deadline.Mark(ctx, r.parent.Err)
	r.answers.markLate(ctx)
}

// Decide evaluates the check at a position by the named digest and, where the policy or the
// reference requires it, by its children or the index that lists it.
func (r *Result) Decide(i int) policy.Decision {
	check := r.checks[i]
	if r.Err != nil && check.NeedsDigest() {
		return policy.Decision{
			Check: check, Result: policy.Indeterminate,
			Reasons: []policy.Reason{policy.LookReason(r.Err, check.Entry)},
		}
	}
	if !check.NeedsProof() {
		return r.own[i]
	}
	decision := decide.OfIndex(r.joined(i), r.Pinned.Descriptor())
	if r.isAtTag {
		return policy.AtTag(decision)
	}
	return decision
}

// joined is the decision by all digests that the check is about.
func (r *Result) joined(i int) policy.Decision {
	switch r.checks[i].Platforms {
	case policy.PlatformEach:
		return r.platforms().Each(r.own[i])
	case policy.PlatformAny:
		return r.platforms().Any(r.own[i])
	}
	byIndex := r.byIndex(i)
	if byIndex.Result == policy.Pass {
		return onIndex(byIndex, r.parent.Pinned)
	}
	return decide.BesideIndex(r.own[i], byIndex, r.parent.Err)
}

// platforms are the children of the named digest.
func (r *Result) platforms() decide.Platforms {
	return decide.Platforms{Children: r.children.Children, Err: r.children.Err, Answers: r.answers.about}
}

// onIndex adds to a decision about an index that it lists the named digest.
func onIndex(decision policy.Decision, listing image.Pinned) policy.Decision {
	decision.Reasons = append(slices.Clip(decision.Reasons), policy.Reason{
		Code: policy.Verified, Path: decision.Check.Entry,
		Message: "the proved index " + listing.Digest().String() + " lists this platform",
	})
	return decision
}

// byIndex is the decision by the index, where it was asked since the named digest meets no check itself.
func (r *Result) byIndex(i int) (decision policy.Decision) {
	if r.own[i].Result != policy.Pass && i < len(r.byParent) {
		decision = r.byParent[i]
	}
	return decision
}

// lacksClaims reports whether a check that requires verification does not pass so far, or earlier
// evidence could.
func (r *Result) lacksClaims() bool {
	for i, check := range r.checks {
		if result := r.Decide(i).Result; check.NeedsProof() && result != policy.Pass && result != policy.Skipped {
			return true
		}
	}
	return r.Evidence().IsYoung(r.checks)
}

// isVerified reports whether a check that requires verification passes, and none denies.
func (r *Result) isVerified() bool {
	verified := false
	for i, check := range r.checks {
		switch result := r.Decide(i).Result; {
		case result == policy.Pass:
			verified = verified || check.NeedsProof()
		case result != policy.Skipped && !check.Action.Admits():
			return false
		}
	}
	return verified
}

// Given is a judge's input for the check at a position.
func (r *Result) Given(i int) policy.Given {
	if r.Err != nil {
		return Unasked(r.checks[i], r.Err)
	}
	if by := r.byIndex(i).Result; by == policy.Pass || by == policy.Indeterminate {
		return r.nearest(r.checks[i])
	}
	return r.given(r.checks[i], r.answers.about(r.Pinned.Digest()))
}

// nearest is a judge's input about the index and the digest that it lists.
func (r *Result) nearest(check *policy.Check) policy.Given {
	return r.given(check, decide.Nearest(r.answers.about(r.Pinned.Digest()), r.answers.about(r.parent.Pinned.Digest()), r.Pinned.Repository(), r.answers.first))
}

// given is a judge's input about the image by the answers about a digest.
func (r *Result) given(check *policy.Check, answers policy.Answers) policy.Given {
	return policy.Given{Check: check, Pinned: r.Pinned, Answers: answers, Data: r.data, DataErr: r.dataErr}
}

// Judged completes a judge's decision on the check at a position: it names the index that was
// verified in place of the named digest.
func (r *Result) Judged(i int, decision policy.Decision) policy.Decision {
	if decision.Result == policy.Pass && r.Err == nil && r.byIndex(i).Result == policy.Pass {
		return onIndex(decision, r.parent.Pinned)
	}
	return decide.OfIndex(decision, r.Pinned.Descriptor())
}

// Evidence is the evidence that dates the image.
func (r *Result) Evidence() decide.Evidence {
	return decide.Evidence{Named: r.Pinned.Digest(), Index: r.parent.Pinned.Digest(), Children: r.children.Children, Answers: r.answers.about}
}

// StaleSince returns the verification time of the oldest stale entry in use; zero for none.
func (r *Result) StaleSince() time.Time { return r.answers.staleSince() }

// Facts returns the facts about the named digest.
func (r *Result) Facts() (facts []verify.Fact) {
	answers := r.answers.about(r.Pinned.Digest())
	for _, q := range questionsOf(r.checks) {
		facts = append(facts, answers(q).Facts...)
	}
	return facts
}

// AllFacts returns all verified facts, of whatever digest, and why the answer of one of the
// authorities is incomplete.
func (r *Result) AllFacts(by func(*verify.Authority) bool) (facts []verify.Fact, gap error) {
	return r.answers.facts(questionsOf(r.checks), by)
}
