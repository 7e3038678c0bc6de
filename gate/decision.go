package gate

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/internal/oldobject"
	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/gate/internal/tagdigest"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/workload"
)

// Decide evaluates one object. It always returns an outcome; failures are reasons in it.
func (g *Gate) Decide(ctx context.Context, request Request) Outcome {
	return g.DecideAll(ctx, []Request{request}, nil)[0]
}

// DecideAll evaluates objects together, by one snapshot: a reference that several of them
// use is resolved and verified once. The outcomes are in the order of the requests.
// Progress, if given, is called in the caller's goroutine after each image evaluation, with the
// numbers of finished ones and of all. Not counted are evaluations that do not end in time, and those
// that judges and overrides add.
func (g *Gate) DecideAll(ctx context.Context, requests []Request, progress func(done, total int)) []Outcome {
	outcomes := make([]Outcome, len(requests))
	ctx, cancel := context.WithTimeout(ctx, g.options.timeout)
	defer cancel()
	ctx = tagdigest.With(waittime.With(ctx))
	snapshot, err := g.state.Snapshot(ctx)
	if err != nil {
		for i, request := range requests {
			outcomes[i] = failed(request, deadline.Reason(err, ""))
		}
		return outcomes
	}

	batch := newBatch(g, snapshot)
	plans := make([]*objectEvaluation, len(requests))
	broken := make([]error, len(requests))
	for i, request := range requests {
		broken[i] = panics.Catch(func() { plans[i] = batch.plan(ctx, request) })
	}
	batch.run(ctx, progress)
	batch.judge(ctx, plans)
	done := waittime.Begin(ctx)
	err = errors.Join(panics.Catch(func() { batch.override(ctx, plans) }), panics.Catch(func() { batch.redirect(ctx, plans) }))
	done()
	if err != nil {
		for i := range broken {
			broken[i] = errors.Join(broken[i], err)
		}
	}
	for i, request := range requests {
		if broken[i] == nil {
			broken[i] = panics.Catch(func() { outcomes[i] = plans[i].settle(ctx, batch) })
		}
		if broken[i] != nil {
			outcomes[i] = failed(request, policy.Reason{Code: policy.Internal, Message: broken[i].Error()})
		}
	}
	return outcomes
}

// failed is the outcome of an object that could not be evaluated.
func failed(request Request, reason policy.Reason) Outcome {
	return Outcome{Subject: request.subject(), Object: request.Object, Source: request.Object.Source(), Result: Error, Reasons: []policy.Reason{reason}}
}

// plan finds the object's images and asks the policies about them.
func (b *batch) plan(ctx context.Context, request Request) *objectEvaluation {
	p := &objectEvaluation{
		request: request, subject: request.subject(), started: b.gate.options.now(),
		images: images{memory: b.gate.memory, old: oldobject.Of(request.Old, request.Object)},
	}
	p.subject.Time = p.started
	if err := p.mutate(ctx, b.snapshot.Policies); err != nil {
		p.images.reasons = append(p.images.reasons, policy.Reason{
			Code: policy.Malformed, Message: err.Error(), Hint: hint.CorrectMutation,
		})
		return p
	}
	p.images.object = p.request.Object
	p.overriding = b.snapshot.Policies.Overriding(p.subject)
	if !request.Anonymous {
		p.identity = workload.IdentityOf(request.Object)
		p.identity.Namespace = p.subject.Namespace
	}
	p.mirrors = newMirrors(b.snapshot.Mirrors, p.subject, p.request.Object)
	if !p.request.Stage.images() {
		return p
	}
	standard, err := p.images.standard()
	if err != nil {
		p.images.malformed("", err)
		return p
	}
	named := p.mirrors.named(standard)
	p.checks.Plan = b.snapshot.Policies.Plan(ctx, p.subject, func(extractors []policy.Extractor) ([]policy.Image, error) {
		if len(extractors) == 0 {
			return named, nil
		}
		found, err := p.images.find(extractors)
		return p.mirrors.named(found), err
	})
	for i := range p.checks.Results {
		if result := &p.checks.Results[i]; result.Err != nil {
			result.Err = deadline.Mark(ctx, result.Err)
			if deadline.IsOwn(ctx) {
				result.Err = deadline.Overlong{Err: result.Err}
			}
		}
	}
	p.leaveUnchanged(ctx, standard)
	defer waittime.Begin(ctx)() // for credentials
	p.checks.evaluations = make([]checkEvaluation, len(p.checks.Checks))
	ownKey := identityKey(p.identity)
	for i := range p.checks.Checks {
		check := &p.checks.Checks[i]
		p.images.add(asWritten(check.Image))
		if check.NeedsDigest() {
			p.checks.evaluations[i] = b.evaluationOf(ctx, check, p.mirrors.planOf(check.Image), p.identity, ownKey)
		}
	}
	p.planMirrors(ctx, b, ownKey)
	return p
}

// settle builds the outcome of an object from the results.
func (p *objectEvaluation) settle(ctx context.Context, b *batch) Outcome {
	_, decided := b.gate.memory.evaluator.Begin(ctx, PhaseDecide)
	defer decided()
	out := Outcome{
		Subject: p.subject, Object: p.request.Object, Source: p.request.Object.Source(), Changed: p.changed, Rules: p.checks.Results,
		Reasons: p.images.reasons, Warnings: p.images.warnings,
		PolicyHash: b.snapshot.Policies.Hash(), TrustGeneration: b.snapshot.Prover.Generation(), MirrorHash: b.snapshot.Mirrors.Hash(),
		Verdicts: make([]Verdict, 0, len(p.images.list)),
	}
	for i := range p.images.list {
		out.Verdicts = append(out.Verdicts, p.conclude(i))
	}
	slices.SortStableFunc(out.Verdicts, func(a, b Verdict) int { return cmp.Compare(a.Image.Pointer, b.Image.Pointer) })
	out.Cost = p.cost()
	p.checks.annotate(&out)
	settleRules(&out)
	settleOutcome(&out)
	if p.request.Stage.mutates() {
		out.hold(p.mutated)
	}
	if out.Result == Allow {
		out.Patch, out.Mutations = slices.Clone(p.patch), len(p.patch)
	}
	p.pins().pin(&out)
	p.validate(ctx, b.snapshot.Policies, &out)
	p.addPullSecrets(&out)
	out.markUnchecked()
	if !p.request.Stage.mutates() { // a rule that needs the request of the change cannot be evaluated later
		out.Rules = append(out.Rules, slices.DeleteFunc(p.mutated, func(r policy.RuleResult) bool { return !r.Ruling.Passes() })...)
	}
	out.Duration = b.gate.options.now().Sub(p.started)
	return out
}

// cost sums the cost of the object's references, each once.
func (p *objectEvaluation) cost() Cost {
	total := Cost{RateLimitRemaining: -1}
	for i, evaluation := range p.checks.evaluations {
		if evaluation.image != nil && !slices.ContainsFunc(p.checks.evaluations[:i], func(before checkEvaluation) bool { return before.image == evaluation.image }) {
			total = total.Add(evaluation.image.cost())
		}
	}
	return p.overrideCost(p.mirrors.cost(total))
}
