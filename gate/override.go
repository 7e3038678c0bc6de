package gate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/verify"
)

var errNotPinned = errors.New("the tag was to be pinned by now, so nobody looked who signed it")

// overridden is one image that overrides may match, with the digests and signers found for
// them in addition to the claims that policies query.
type overridden struct {
	plan  *planned
	image policy.Image
	works []*inspection // that resolve and verify the image
	err   error         // why it could not be resolved
	proof *work         // of the signers of Allows; nil where none is needed
}

// inspection is the extra lookup of a work for overrides.
type inspection struct {
	work             *work
	digests, signers bool // which of them are needed
	finished         bool

	children []image.Digest // that its index lists
	err      error          // why the digests may be incomplete
}

// override collects the digests and signers that the overrides in force match. Without
// overrides it does nothing.
func (j *journey) override(ctx context.Context, plans []*planned) {
	var open []*overridden
	before, inspections := len(j.order), map[*work]*inspection{}
	for _, p := range plans {
		if p == nil || p.overriding == nil {
			continue
		}
		p.overridden = map[string]*overridden{}
		for _, found := range p.images.list {
			if !found.Unchanged {
				one := p.startOverride(ctx, j, found, inspections)
				p.overridden[found.Pointer] = one
				open = append(open, one)
			}
		}
	}
	if len(open) == 0 {
		return
	}
	j.runAll(ctx, slices.Clone(j.order[before:]), func() {})
	var group sync.WaitGroup
	slots := make(chan struct{}, j.gate.options.images)
	for w, in := range inspections {
		if w.result == nil || w.result.Err != nil {
			continue
		}
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if err := panics.Catch(func() { in.inspect(ctx) }); err != nil {
				in.err = err
			}
			in.finished = true
		})
	}
	group.Wait() // each heeds ctx
	j.proveAllowed(ctx, open)
	j.judge(ctx, slices.DeleteFunc(slices.Clone(plans), func(p *planned) bool { return p == nil || !p.spare() }))
}

// spare removes the images that an Allow matches from the judges' input, since they would
// fail an expression about all images, and reports whether there are any.
func (p *planned) spare() bool {
	if p.overriding == nil || !slices.ContainsFunc(p.checks.Results, func(r policy.RuleResult) bool { return r.Judge != nil }) {
		return false
	}
	for _, found := range p.images.list {
		if p.verdict(found).allowance != nil {
			if p.checks.exempt == nil {
				p.checks.exempt = map[string]bool{}
			}
			p.checks.exempt[found.Pointer] = true
		}
	}
	return len(p.checks.exempt) > 0
}

// startOverride collects the works of an image, and has it resolved if none of them does
// and an override matches by digest.
func (p *planned) startOverride(ctx context.Context, j *journey, found policy.Image, inspections map[*work]*inspection) *overridden {
	one := &overridden{plan: p, image: found}
	denies := p.overriding.WantsDigest(policy.OverrideDeny)
	add := func(w *work) {
		if slices.ContainsFunc(one.works, func(in *inspection) bool { return in.work == w }) {
			return
		}
		in := inspections[w]
		if in == nil {
			in = &inspection{work: w}
			inspections[w] = in
		}
		in.digests = in.digests || denies
		in.signers = in.signers || p.overriding.WantsSigner(policy.OverrideDeny)
		one.works = append(one.works, in)
	}
	known := false
	_, tasks := p.checks.tasksOf(found)
	for _, t := range tasks {
		if t.work != nil {
			add(t.work)
			known = known || t.work.ref == found.Ref
		}
	}
	if known || !denies && !p.overriding.WantsDigest(policy.OverrideAllow) {
		return one
	}
	if t := j.plain(ctx, found.Ref, p.mirrors.of(found.Ref), p.identity, identityKey(p.identity)); t.err == nil {
		add(t.work)
	} else {
		one.err = t.err
	}
	return one
}

// inspect reads the children of the image's index, and has every claim query answered.
func (in *inspection) inspect(ctx context.Context) {
	if in.digests {
		in.children, in.err = in.work.Descendants(ctx)
	}
	if in.signers { // the cache alone may have been consulted, and only until the policies were met
		in.work.Complete(ctx)
	}
}

// proveAllowed verifies the signers of Allows, for images that are not allowed otherwise.
func (j *journey) proveAllowed(ctx context.Context, open []*overridden) {
	trip := newJourney(j.gate, j.snapshot)
	for _, one := range open {
		p := one.plan
		if !p.overriding.WantsSigner(policy.OverrideAllow) {
			continue
		}
		v := p.verdict(one.image)
		if v.Override != nil || v.allowance != nil || v.Result == Allow && !p.checks.isUnasked() {
			continue
		}
		requirement := policy.Requirement{Name: "spec.match.signers", Threshold: 1}
		for _, authority := range p.overriding.Authorities() {
			requirement.Members = append(requirement.Members, policy.Member{Authority: authority})
		}
		check := &policy.Check{Image: one.image, Entry: requirement.Name, Claims: policy.Claims{Requirements: []policy.Requirement{requirement}}}
		if len(v.Decisions) > 0 {
			check.Credentials = v.Decisions[0].Check.Credentials
		}
		one.proof = trip.work(ctx, check, p.mirrors.wayOf(one.image), p.identity, identityKey(p.identity)).work
	}
	if len(trip.order) > 0 {
		trip.run(ctx, nil)
	}
}

// digests returns all known digests of the image, and an error if there may be others.
func (o *overridden) digests() (all []image.Digest, gap error) {
	gap = o.err
	known := false
	for _, in := range o.works {
		w := in.work
		switch {
		case w.result == nil:
			gap = errUnfinished
		case w.result.Err != nil:
			gap = w.result.Err
		case in.digests && (!in.finished || in.err != nil):
			return append(all, in.children...), cmp.Or(in.err, error(errUnfinished))
		default:
			all = append(union(all, []image.Digest{w.result.Pinned.Digest()}), in.children...)
			known = known || w.ref == o.image.Ref
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
	asked := func(check *policy.Check) bool {
		return slices.ContainsFunc(check.Questions(), func(q policy.Question) bool { return o.plan.overriding.MayBeDenied(q.Authority) })
	}
	for i := range o.plan.checks.Results {
		// The claim queries of a failed rule are not known. A broken policy has none.
		if result := &o.plan.checks.Results[i]; result.Err != nil && result.Policy.Broken == nil {
			gap = result.Err
		}
	}
	for i := range o.plan.checks.Checks {
		check, t := &o.plan.checks.Checks[i], o.plan.checks.tasks[i]
		if check.Image.Pointer == o.image.Pointer && t.work == nil && asked(check) {
			gap = cmp.Or(t.err, errNotPinned)
		}
	}
	for _, in := range o.works {
		w := in.work
		switch {
		case !slices.ContainsFunc(w.Checks(), asked):
		case w.result == nil || w.result.Err == nil && !in.finished:
			gap = errUnfinished
		case w.result.Err != nil:
			gap = w.result.Err
		default:
			more, lacks := w.result.AllFacts(o.plan.overriding.MayBeDenied)
			facts, gap = append(facts, more...), cmp.Or(gap, lacks)
		}
	}
	return facts, gap
}

// overrideCost adds the cost of requests made for overrides alone.
func (p *planned) overrideCost(total Cost) Cost {
	var seen []*work
	for _, one := range p.overridden {
		works := []*work{one.proof}
		for _, in := range one.works {
			if w := p.mirrors.of(one.image.Ref); len(in.work.Checks()) == 0 && (w == nil || w.digest != in.work) {
				works = append(works, in.work)
			}
		}
		for _, w := range works {
			if w != nil && !slices.Contains(seen, w) {
				seen, total = append(seen, w), total.Add(w.cost())
			}
		}
	}
	return total
}
