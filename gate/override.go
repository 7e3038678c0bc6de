package gate

import (
	"context"
	"slices"
	"sync"

	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/policy"
)

// override collects the digests and signers that the overrides in force match. Without
// overrides it does nothing.
func (b *batch) override(ctx context.Context, plans []*objectEvaluation) {
	var open []*overridden
	before, inspections := len(b.order), map[*imageEvaluation]*inspection{}
	for _, p := range plans {
		if p == nil || p.overriding == nil {
			continue
		}
		p.overridden = map[string]*overridden{}
		for _, found := range p.images.list {
			if !found.Unchanged {
				one := p.startOverride(ctx, b, found, inspections)
				p.overridden[found.Pointer] = one
				open = append(open, one)
			}
		}
	}
	if len(open) == 0 {
		return
	}
	b.runAll(ctx, slices.Clone(b.order[before:]), func() {})
	var group sync.WaitGroup
	slots := make(chan struct{}, b.gate.options.images)
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
	b.proveAllowed(ctx, open)
	b.judge(ctx, slices.DeleteFunc(slices.Clone(plans), func(p *objectEvaluation) bool { return p == nil || !p.spare() }))
}

// spare removes the images that an Allow matches from the judges' input, since they would
// fail an expression about all images, and reports whether there are any.
func (p *objectEvaluation) spare() bool {
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

// startOverride collects the evaluations of an image, and has it resolved if none of them does
// and an override matches by digest.
func (p *objectEvaluation) startOverride(ctx context.Context, b *batch, found policy.Image, inspections map[*imageEvaluation]*inspection) *overridden {
	one := &overridden{plan: p, image: found}
	denies := p.overriding.WantsDigest(policy.OverrideDeny)
	add := func(evaluation *imageEvaluation) {
		if slices.ContainsFunc(one.evaluations, func(in *inspection) bool { return in.evaluation == evaluation }) {
			return
		}
		in := inspections[evaluation]
		if in == nil {
			in = &inspection{evaluation: evaluation}
			inspections[evaluation] = in
		}
		in.digests = in.digests || denies
		in.signers = in.signers || p.overriding.WantsSigner(policy.OverrideDeny)
		one.evaluations = append(one.evaluations, in)
	}
	known := false
	_, evaluations := p.checks.evaluationsOf(found)
	for _, evaluation := range evaluations {
		if evaluation.image != nil {
			add(evaluation.image)
			known = known || evaluation.image.ref == found.Ref
		}
	}
	if known || !denies && !p.overriding.WantsDigest(policy.OverrideAllow) {
		return one
	}
	if evaluation := b.plain(ctx, found.Ref, p.mirrors.of(found.Ref), p.identity, identityKey(p.identity)); evaluation.err == nil {
		add(evaluation.image)
	} else {
		one.err = evaluation.err
	}
	return one
}

// inspect reads the children of the image's index, and has every claim query answered.
func (in *inspection) inspect(ctx context.Context) {
	if in.digests {
		in.children, in.err = in.evaluation.Descendants(ctx)
	}
	if in.signers { // the cache alone may have been consulted, and only until the policies were met
		in.evaluation.Complete(ctx)
	}
}

// proveAllowed verifies the signers of Allows, for images that are not allowed otherwise.
func (b *batch) proveAllowed(ctx context.Context, open []*overridden) {
	batch := newBatch(b.gate, b.snapshot)
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
		one.proof = batch.evaluationOf(ctx, check, p.mirrors.planOf(one.image), p.identity, identityKey(p.identity)).image
	}
	if len(batch.order) > 0 {
		batch.run(ctx, nil)
	}
}

// overrideCost adds the cost of requests made for overrides alone.
func (p *objectEvaluation) overrideCost(total Cost) Cost {
	var seen []*imageEvaluation
	for _, one := range p.overridden {
		evaluations := []*imageEvaluation{one.proof}
		for _, in := range one.evaluations {
			if plan := p.mirrors.of(one.image.Ref); len(in.evaluation.Checks()) == 0 && (plan == nil || plan.digest != in.evaluation) {
				evaluations = append(evaluations, in.evaluation)
			}
		}
		for _, evaluation := range evaluations {
			if evaluation != nil && !slices.Contains(seen, evaluation) {
				seen, total = append(seen, evaluation), total.Add(evaluation.cost())
			}
		}
	}
	return total
}
