package gate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/gate/redirect"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
)

// redirects reports whether a target is chosen for a route. For a template, or an object
// that cannot be changed, a denying mapping is only reported.
func (p pins) redirects(route *mirror.Route) bool {
	switch p.pinning() {
	case PinHere:
		return true
	case PinDone:
		return false // redirection is done already
	}
	return route.Otherwise == mirror.Deny
}

// asks reports whether targets are asked anything: for the choice, or for the
// digest that a pod would be judged by.
func (p pins) asks(route *mirror.Route) bool {
	return p.redirects(route) || p.pinning() == PinLater && route.Resolve == mirror.Target
}

// planMirrors notes which targets are to be asked.
func (p *objectEvaluation) planMirrors(ctx context.Context, b *batch, identityKey string) {
	if p.mirrors.set == nil || b.gate.options.chooser == nil {
		return
	}
	for _, found := range p.images.list {
		plan := p.mirrors.of(found.Ref)
		if found.Unchanged || plan == nil || plan.route == nil || !p.pins().asks(plan.route) || p.pins().isTransformed(found) {
			continue
		}
		proves, evaluations := p.checks.evaluationsOf(found)
		if plan.route.When == mirror.Verified && !proves {
			continue
		}
		if plan.targets == nil { // another container may have the same image
			plan.targets = b.newTargetRequest(plan.route, p.identity, identityKey)
			plan.targets.Chooses = p.pins().redirects(plan.route)
		}
		for _, evaluation := range evaluations {
			if evaluation.err == nil {
				evaluation.image.SetTarget(&plan.targets.Target)
			}
		}
		if len(evaluations) > 0 || plan.digest != nil {
			continue
		}
		if evaluation := b.plain(ctx, found.Ref, plan, p.identity, identityKey); evaluation.err == nil {
			plan.digest = evaluation.image
			plan.digest.SetTarget(&plan.targets.Target)
		} else {
			plan.err = evaluation.err
		}
	}
}

// pending is an image that still needs a target.
type pending struct {
	plan    *objectEvaluation
	at      int
	targets *targetRequest
	choice  redirect.Choice
}

// redirect chooses the targets of all images allowed so far: those that the cache answers
// one after another, since that takes no time, the others concurrently.
func (b *batch) redirect(ctx context.Context, plans []*objectEvaluation) {
	var open []*pending
	for _, p := range plans {
		if p == nil || p.mirrors.set == nil {
			continue
		}
		for i := range p.images.list {
			if one := p.seekTarget(i); one != nil {
				open = append(open, one)
			}
		}
	}
	var group sync.WaitGroup
	slots := make(chan struct{}, b.gate.options.images)
	started := time.Now()
	for _, one := range open {
		// Credentials may have to be waited for even so, but not one after another.
		if time.Since(started) < drainTimeout && one.remembered(ctx) {
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			one.choose(ctx)
		})
	}
	group.Wait() // Choose heeds ctx
	for _, one := range open {
		one.plan.redirected(one)
	}
	for _, p := range plans {
		if p != nil && p.mirrors.set != nil {
			p.lookForSecrets(ctx, b.gate.options.secrets)
		}
	}
}

// remembered chooses the target from the cache alone.
func (one *pending) remembered(ctx context.Context) (known bool) {
	err := panics.Catch(func() { one.choice, known = one.targets.Cached(ctx, one.digest()) })
	return known && err == nil
}

// digest is the digest that the target must serve.
func (one *pending) digest() image.Digest { return one.plan.verdicts[one.at].Pinned.Digest() }

// choose chooses the target. A panic becomes an error.
func (one *pending) choose(ctx context.Context) {
	err := panics.Catch(func() { one.choice = one.targets.Choose(ctx, one.digest()) })
	if err != nil {
		one.choice = redirect.Choice{Attempts: []redirect.Attempt{{
			Target: one.targets.Route.Candidates[0].Ref, State: redirect.Failed, Err: err,
		}}}
	}
}

// seekTarget applies the mirrors to an image as far as this requires no request to a
// target; it returns the rest of the requests.
func (p *objectEvaluation) seekTarget(i int) *pending {
	v := p.conclude(i)
	plan := p.mirrors.of(v.Image.Ref)
	switch {
	case plan == nil || v.Image.Unchanged:
		return nil
	case plan.err != nil:
		p.mirrors.unrouted(&p.verdicts[i], plan)
		return nil
	case len(plan.origins) > 0:
		return nil
	}
	route := plan.route
	v.Redirect = &Redirect{Mirror: route.Mirror}
	unasked := plan.targets == nil || route.When == mirror.Verified && !v.asksProof()
	switch {
	case p.pins().pinning() == PinDone:
		v.Redirect.Why = "the object is redirected before it comes here"
	case !p.pins().redirects(route):
		v.Redirect.Why = "only pods are redirected, when they come"
		if p.pins().pinning() == PinNever {
			v.Redirect.Why = "the object cannot be changed here"
		}
	case p.pins().isTransformed(v.Image):
		v.Redirect.Why = "the reference was made by a transformation, so that its text cannot be replaced"
	case v.Result != Allow:
		v.Redirect.Why = "the image is not allowed"
	case unasked:
		v.Redirect.Why = "no policy asks for a proof of the image, and when is Verified"
	case v.Pinned.IsZero():
		v.Redirect.Why = "its digest is not known: " + plan.unresolved()
	case route.When == mirror.Verified && !v.proved():
		v.Redirect.Why = "the image was not proved, and when is Verified"
	default:
		p.verdicts[i] = v
		return &pending{plan: p, at: i, targets: plan.targets}
	}
	p.pins().stay(&v, route, !unasked && v.Pinned.IsZero())
	p.verdicts[i] = v
	return nil
}

// unresolved returns the reason why there is no digest.
func (plan *mirrorPlan) unresolved() string {
	if plan.digest == nil {
		return "it was not resolved"
	}
	if plan.digest.result == nil {
		return errUnfinished(plan.digest.ref).Error()
	}
	return fmt.Sprint(plan.digest.result.Err)
}

// proved reports whether a policy has verified the image.
func (v *Verdict) proved() bool {
	return slices.ContainsFunc(v.Decisions, func(d policy.Decision) bool {
		return d.Result == policy.Pass && d.Check.NeedsProof()
	})
}

// asksProof reports whether a policy requires verification of the image.
func (v *Verdict) asksProof() bool {
	return slices.ContainsFunc(v.Decisions, func(d policy.Decision) bool { return d.Check.NeedsProof() })
}

// unrouted records that an entry which names the image could not be evaluated. That is an
// error where the entry may deny, and always for a copy: only some of its names were
// judged.
func (m mirrors) unrouted(v *Verdict, plan *mirrorPlan) {
	reason := policy.Reason{
		Code: policy.NotMirrored, Message: "the mirrors could not be queried: " + plan.err.Error(), Hint: hint.MirrorSelectors,
	}
	denies := m.set.Denies()
	switch {
	case len(plan.origins) > 0:
		denies, reason.Hint = true, hint.FewerSources
	case plan.route != nil:
		denies = plan.route.Otherwise == mirror.Deny
	}
	if !denies {
		v.Warnings = append(v.Warnings, reason)
		return
	}
	v.fail(reason)
}

// stay decides about an image that no target qualifies for. Silent means that targets did
// not answer.
func (p pins) stay(v *Verdict, route *mirror.Route, silent bool) {
	if v.Result != Allow {
		return
	}
	said := policy.Reason{
		Code: policy.NotMirrored, Path: route.Mirror, Message: "it stays at " + v.Image.Ref.Registry() + ": " + v.Redirect.words(),
		Hint: hint.ExplainMirror(v.Image.Ref.Written()),
	}
	switch {
	case route.Otherwise != mirror.Deny:
		if silent || len(v.Redirect.Attempts) > 0 {
			v.Warnings = append(v.Warnings, said)
		}
		return
	case p.pinning() == PinLater && p.isTransformed(v.Image):
		return // its pods are asked about when they come
	}
	said.Code, said.Message = policy.NoMirror, "no mirror qualifies, and the mapping does not leave it at "+v.Image.Ref.Registry()+": "+v.Redirect.words()
	if p.pinning() == PinDone {
		said.Message = "it was not redirected: the mutating webhook did not run, or another one changed the image afterwards"
		said.Hint = hint.MirrorByWebhook
	}
	if silent {
		v.fail(said)
		return
	}
	v.Result, v.Pin, v.Reasons = Deny, false, []policy.Reason{said}
}

// isSilent reports whether a target that did not answer might have qualified.
func (r *Redirect) isSilent() bool {
	return slices.ContainsFunc(r.Attempts, func(a redirect.Attempt) bool {
		return a.State == redirect.Failed || a.State == redirect.Resting
	})
}

// words returns the reason why no target was chosen.
func (r *Redirect) words() string {
	if r.Why != "" {
		return r.Why
	}
	said := make([]string, len(r.Attempts))
	for i, a := range r.Attempts {
		said[i] = a.Target.Repository().String() + " " + a.Words()
	}
	return strings.Join(said, "; ")
}

// redirected records the chosen target in the plan.
func (p *objectEvaluation) redirected(one *pending) {
	v, route := &p.verdicts[one.at], one.targets.Route
	r := v.Redirect
	r.Target, r.Attempts = one.choice.Target, one.choice.Attempts
	v.compare(route, p.atSource)
	if r.Target.IsZero() || r.Target.Digest() != v.Pinned.Digest() {
		r.Target = image.Pinned{}
		p.pins().stay(v, route, r.isSilent())
		return
	}
	if p.pins().pinning() == PinNever {
		v.Result, v.Pin = Deny, false
		v.Reasons = []policy.Reason{{
			Code: policy.NoMirror, Path: route.Mirror, Message: "the mapping does not leave it at " + v.Image.Ref.Registry() + ", and the object cannot be changed here",
			Hint: hint.Write(r.Target.String()),
		}}
		return
	}
	v.Reasons = append(v.Reasons, policy.Reason{Code: policy.Mirrored, Path: route.Mirror, Message: "redirected to " + r.Target.String()})
	p.overruleTarget(v)
}

// compare records that the tag resolves to another digest at the side whose answer does
// not count.
func (v *Verdict) compare(route *mirror.Route, source func(policy.Image) image.Digest) {
	if !v.Image.Ref.Digest().IsZero() {
		return
	}
	var other image.Digest
	side := string(mirror.Target)
	if route.Resolve == mirror.Target {
		side, other = string(mirror.Source), source(v.Image)
	} else if i := slices.IndexFunc(v.Redirect.Attempts, func(a redirect.Attempt) bool {
		return !a.Tag.IsZero() && a.Tag != v.Pinned.Digest()
	}); i >= 0 {
		other = v.Redirect.Attempts[i].Tag
	}
	if other.IsZero() || other == v.Pinned.Digest() {
		return
	}
	v.Redirect.Other = other
	v.Warnings = append(v.Warnings, policy.Reason{
		Code: policy.MirrorDiffers, Path: route.Mirror, Expected: v.Pinned.Digest().String(), Found: other.String(),
		Message: "the tag " + v.Image.Ref.Tag() + " resolves to another digest at the " + strings.ToLower(side),
		Hint:    hint.MirrorOutdated,
	})
}

// atSource returns the digest that the source's tag resolves to, if it was requested.
func (p *objectEvaluation) atSource(found policy.Image) image.Digest {
	evaluation := p.mirrors.of(found.Ref).digest
	if evaluation == nil {
		_, evaluations := p.checks.evaluationsOf(found)
		if i := slices.IndexFunc(evaluations, func(check checkEvaluation) bool { return check.image != nil }); i >= 0 {
			evaluation = evaluations[i].image
		}
	}
	if evaluation == nil || evaluation.result == nil {
		return image.Digest{}
	}
	return evaluation.AtSource()
}
