package gate

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/gate/internal/oldobject"
	"github.com/quaymaster/quaymaster/internal/waittime"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

// objectEvaluation is one object with its images and the checks that concern them.
type objectEvaluation struct {
	request  Request
	subject  *policy.Subject
	images   images
	checks   checks
	mutated  []policy.RuleResult  // of the mutation rules
	patch    []workload.Operation // the operations of mutation rules
	changed  workload.Object      // the object after mutation; zero if unchanged
	identity workload.Identity
	started  time.Time
	mirrors  mirrors
	verdicts []Verdict // of images, once concluded
	// overriding holds the overrides that apply; nil for none. overridden holds their extra
	// lookups, by the image's pointer.
	overriding *set.Overriding
	overridden map[string]*overridden
}

// checks are the checks that policies require for the images of one object.
type checks struct {
	set.Plan
	evaluations []checkEvaluation // of the checks, in their order
	// judged are the decisions of judges, by the check's place in the plan.
	judged map[int]policy.Decision
	// exempt are the images that an Allow matches and that judges do not see any more.
	exempt map[string]bool
}

// checkEvaluation is the evaluation of one check: its part of an image evaluation, or the reason why there is
// none.
type checkEvaluation struct {
	image *imageEvaluation
	at    int   // the index of the check in it
	err   error // credentials that could not be had
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
			Code: policy.Malformed, Message: err.Error(), Hint: "correct the mutation rules that match it, or write the object as they would leave it",
		})
		return p
	}
	p.images.object = p.request.Object
	p.overriding = b.snapshot.Policies.Overriding(p.subject)
	if !request.Anonymous {
		p.identity = workload.IdentityOf(request.Object)
		p.identity.Namespace = p.subject.Namespace
	}
	p.mirrors = newMirrors(b, p)
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

// pins returns the references of the object's images.
func (p *objectEvaluation) pins() pins {
	return pins{own: p.request.Pinning, bare: p.subject.Bare, uses: p.images.uses}
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
	out.hold(p.mutated)
	if out.Result == Allow {
		out.Patch, out.Mutations = slices.Clone(p.patch), len(p.patch)
	}
	p.pins().pin(&out)
	p.validate(ctx, b.snapshot.Policies, &out)
	p.addPullSecrets(&out)
	out.markUnchecked()
	out.Duration = b.gate.options.now().Sub(p.started)
	return out
}

// conclude returns the verdict on the image at a position, the same each time.
func (p *objectEvaluation) conclude(i int) Verdict {
	if p.verdicts == nil {
		p.verdicts = make([]Verdict, len(p.images.list))
		for at, found := range p.images.list {
			p.verdicts[at] = p.verdict(found)
		}
	}
	return p.verdicts[i]
}

// verdict collects the decisions about one image.
func (p *objectEvaluation) verdict(found policy.Image) Verdict {
	v := Verdict{Image: found, Cost: Cost{RateLimitRemaining: -1}}
	var evaluations []checkEvaluation // of the decisions
	var stale time.Time               // verification time of the oldest fact in use
	var differs *policy.Check         // its credentials resolve another digest
	firm := false                     // the digest is that of a check which enforces
	byLast := false                   // the digest comes from a stale entry
	for i := range p.checks.Checks {
		check := &p.checks.Checks[i]
		if check.Image.Pointer != found.Pointer {
			continue
		}
		v.Decisions = append(v.Decisions, p.checks.decide(i, p.pins()))
		evaluations = append(evaluations, p.checks.evaluations[i])
		w := p.checks.evaluations[i].image
		if w == nil || w.result == nil {
			continue
		}
		v.Cost, v.Duration = w.cost(), w.result.Duration
		stale = claims.Earlier(stale, w.result.StaleSince())
		byLast = byLast || w.result.IsStale && check.NeedsProof() && !check.Action.Admits()
		switch {
		case w.result.Err != nil || asWritten(check.Image).Ref != found.Ref:
		case v.Pinned.IsZero() || !firm && !check.Action.Admits():
			v.Pinned, firm = w.result.Pinned, !check.Action.Admits()
		case v.Pinned.Digest() != w.result.Pinned.Digest() && !check.Action.Admits():
			differs = check
		}
	}
	policy.Require(v.Decisions)
	for i := range v.Decisions {
		v.Decisions[i] = p.pins().withDigest(v.Decisions[i], evaluations[i])
	}
	p.mirrors.of(v.Image.Ref).resolved(&v)
	settle(&v)
	p.overrule(&v)
	if byLast {
		p.pins().pinLast(&v)
	}
	if differs != nil && v.Result == Allow {
		v.disagree(differs)
	}
	p.pins().notPinned(&v)
	if !stale.IsZero() && v.Result == Allow {
		v.Warnings = append(v.Warnings, staleReason(p.started.Sub(stale)))
	}
	return v
}

// cost sums the cost of the object's references, each once.
func (p *objectEvaluation) cost() Cost {
	total := Cost{RateLimitRemaining: -1}
	for i, t := range p.checks.evaluations {
		if t.image != nil && !slices.ContainsFunc(p.checks.evaluations[:i], func(before checkEvaluation) bool { return before.image == t.image }) {
			total = total.Add(t.image.cost())
		}
	}
	return p.overrideCost(p.mirrors.cost(total))
}
