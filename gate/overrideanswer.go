package gate

import (
	"cmp"
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/verify"
)

// overridesPath is the path of reasons that are about no single override.
const overridesPath = "ImageOverride"

// overrule applies the overrides to a verdict: a Deny outweighs everything, an image that
// may match a Deny but could not be verified is not allowed, and an Allow outweighs the
// policies' objections to the image.
func (p *objectEvaluation) overrule(v *Verdict) {
	if p.overriding == nil || v.Image.Unchanged {
		return
	}
	known := p.overridden[v.Image.Pointer]
	if known == nil { // its finding out failed
		known = &overridden{plan: p, image: v.Image, err: errUnfinished(v.Image.Ref)}
	}
	known.fillIn(v)
	about, of, gap := known.toDeny()
	if said := p.overriding.Says(policy.OverrideDeny, about); said != nil {
		v.denied(said)
		return
	}
	if gap != nil {
		reason := deadline.Reason(gap, overridesPath)
		if _, fetched := errors.AsType[image.Failure](gap); fetched {
			reason = policy.LookReason(gap, overridesPath)
		}
		reason.Message = "an override denies " + of + ", and whether this image is concerned is not known: " + reason.Message
		reason.Hint = hint.ConfineOverride
		if v.Result != Deny {
			v.fail(reason)
		}
		return
	}
	known.allowBy(v)
	if v.Result == Allow && !v.Pin && p.overriding.WantsDigest(policy.OverrideDeny) && p.pins().canPin(v) {
		v.Pin = true // the tag may move to a denied digest
		v.Reasons = append(v.Reasons, policy.Reason{
			Code: policy.DigestPinned, Path: overridesPath, Message: "pinned, since an override denies a digest and the tag may be moved to it",
		})
	}
}

// denied is the answer of a Deny.
func (v *Verdict) denied(said *policy.Overruling) {
	reason := said.Reason()
	if said.Doubtful {
		reason.Message = "in some namespaces, and the request names none, " + reason.Message
		v.fail(reason)
		return
	}
	if v.Result == Allow {
		v.Reasons = nil
	}
	v.Result, v.Pin, v.Override = Deny, false, said.Override
	v.Reasons = append([]policy.Reason{reason}, v.Reasons...)
}

// allowBy looks for an Allow, and uses it if the image is not allowed without.
func (o *overridden) allowBy(v *Verdict) {
	pins := o.plan.pins()
	said := o.plan.overriding.Says(policy.OverrideAllow, o.toAllow(v))
	if said == nil || slices.ContainsFunc(v.Decisions, o.isOther) {
		return
	}
	isTag := v.Image.Ref.Digest().IsZero()
	if !said.ByName && isTag && !pins.canPin(v) && (pins.pinning() != PinLater || v.wantsNamed()) {
		return // the tag may resolve to another digest by the time of the pull
	}
	v.allowance = said
	if v.Result == Allow {
		return
	}
	wanted := !said.ByName
	for i := range v.Decisions {
		check := v.Decisions[i].Check
		wanted = wanted || check.Skip == "" && check.MutateDigest
	}
	v.Pin = wanted && isTag && !v.Pinned.IsZero()
	v.use(said, v.Reasons)
	v.Result, v.Reasons = Allow, []policy.Reason{said.Reason()}
}

// isOther reports whether a decision denies another image of the same text, and no Allow names that image.
func (o *overridden) isOther(d policy.Decision) bool {
	other := asWritten(d.Check.Image)
	if other.Ref == o.image.Ref || d.Result == policy.Pass || d.Result == policy.Skipped || d.Check.Action.Admits() {
		return false
	}
	about := set.Overridden{Names: o.plan.mirrors.namesOf(other), Digests: []image.Digest{other.Ref.Digest()}}
	return o.plan.overriding.Says(policy.OverrideAllow, about) == nil
}

// fillIn fills in the digest of an image that only overrides ask about.
func (o *overridden) fillIn(v *Verdict) {
	evaluations := []*imageEvaluation{o.proof}
	for _, in := range o.evaluations {
		evaluations = append(evaluations, in.evaluation)
	}
	for _, evaluation := range evaluations {
		if evaluation != nil && v.Pinned.IsZero() && evaluation.result != nil && evaluation.result.Err == nil && evaluation.ref == v.Image.Ref {
			v.Pinned, v.Cost, v.Duration = evaluation.result.Pinned, evaluation.cost(), evaluation.result.Duration
		}
	}
}

// toDeny is everything known about the image. A gap is the reason why more digests or
// signers, which a Deny may match, can exist; of describes them in words.
func (o *overridden) toDeny() (about set.Overridden, of string, gap error) {
	overriding := o.plan.overriding
	about.Names = o.plan.mirrors.namesOf(o.image)
	for i := range o.plan.checks.Checks {
		if check := &o.plan.checks.Checks[i]; check.Image.Pointer == o.image.Pointer {
			about.Names = union(about.Names, append(o.plan.mirrors.namesOf(asWritten(check.Image)), check.Image.Ref))
		}
	}
	var unseen, unread error
	about.Digests, unseen = o.digests()
	for _, name := range about.Names {
		if !name.Digest().IsZero() {
			about.Digests = union(about.Digests, []image.Digest{name.Digest()})
		}
	}
	about.Facts, unread = o.signed()
	switch {
	case unseen != nil && overriding.WantsDigest(policy.OverrideDeny):
		return about, "digests", unseen
	case unread != nil && overriding.WantsSigner(policy.OverrideDeny):
		return about, "what somebody signed", unread
	}
	return about, "", nil
}

// toAllow holds only the confirmed digests and signers of the image.
func (o *overridden) toAllow(v *Verdict) set.Overridden {
	about := set.Overridden{Names: o.plan.mirrors.namesOf(o.image)}
	if v.Pinned.IsZero() {
		if digest := o.image.Ref.Digest(); !digest.IsZero() {
			about.Digests = []image.Digest{digest}
		}
		return about
	}
	about.Digests = []image.Digest{v.Pinned.Digest()}
	if proof := o.proof; proof != nil && proof.result != nil && proof.result.Err == nil && proof.result.Pinned.Digest() == v.Pinned.Digest() {
		about.Facts = proof.result.Facts()
	}
	return about
}

// namesOf returns an image's own name and those that it is a copy of.
func (m mirrors) namesOf(found policy.Image) []image.Ref {
	names := []image.Ref{found.Ref}
	if plan := m.of(found.Ref); plan != nil {
		for _, origin := range plan.origins {
			names = append(names, origin.Ref)
		}
	}
	return names
}

// overruleTarget denies a redirection to a denied repository.
func (p *objectEvaluation) overruleTarget(v *Verdict) {
	if p.overriding == nil || v.Redirect == nil || v.Redirect.Target.IsZero() {
		return
	}
	target := v.Redirect.Target.Ref()
	said := p.overriding.Says(policy.OverrideDeny, set.Overridden{Names: []image.Ref{target}})
	if said == nil {
		return
	}
	v.Redirect.Target = image.Pinned{}
	v.Redirect.Why = "an override denies " + target.Repository().String()
	v.denied(said)
}

// digests returns all known digests of the image, and an error if there may be others.
func (o *overridden) digests() (all []image.Digest, gap error) {
	gap = o.err
	known := false
	for _, in := range o.evaluations {
		evaluation := in.evaluation
		switch {
		case evaluation.result == nil:
			gap = errUnfinished(evaluation.ref)
		case evaluation.result.Err != nil:
			gap = evaluation.result.Err
		case in.digests && (!in.finished || in.err != nil):
			return append(all, in.children...), cmp.Or(in.err, errUnfinished(evaluation.ref))
		default:
			all = append(union(all, []image.Digest{evaluation.result.Pinned.Digest()}), in.children...)
			known = known || evaluation.ref == o.image.Ref
		}
	}
	if known {
		return all, nil // by one of the credentials it was seen
	}
	return all, gap
}

// signed returns the facts that the policies' claim queries verified for the image, and an
// error if a denied signer may have been missed.
func (o *overridden) signed() (facts []verify.Fact, gap error) {
	mayBeDenied := func(check *policy.Check) bool {
		return slices.ContainsFunc(check.Questions(), func(q policy.Question) bool { return o.plan.overriding.MayBeDenied(q.Authority) })
	}
	for i := range o.plan.checks.Results {
		// The claim queries of a failed rule are not known. A broken policy has none.
		if result := &o.plan.checks.Results[i]; result.Err != nil && result.Policy.Broken == nil {
			gap = result.Err
		}
	}
	for i := range o.plan.checks.Checks {
		check, evaluation := &o.plan.checks.Checks[i], o.plan.checks.evaluations[i]
		if check.Image.Pointer == o.image.Pointer && evaluation.image == nil && mayBeDenied(check) {
			gap = cmp.Or(evaluation.err, errNotPinned)
		}
	}
	for _, in := range o.evaluations {
		evaluation := in.evaluation
		switch {
		case !slices.ContainsFunc(evaluation.Checks(), mayBeDenied):
		case evaluation.result == nil || evaluation.result.Err == nil && !in.finished:
			gap = errUnfinished(evaluation.ref)
		case evaluation.result.Err != nil:
			gap = evaluation.result.Err
		default:
			more, lacks := evaluation.result.AllFacts(o.plan.overriding.MayBeDenied)
			facts, gap = append(facts, more...), cmp.Or(gap, lacks)
		}
	}
	return facts, gap
}

var errNotPinned = errors.New("the tag was to be pinned by now, so its signers were not verified")
