package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/internal/waiting"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/policy/set"
	"github.com/quaymaster/quaymaster/workload"
)

// planned is one object with its images and the checks that concern them.
type planned struct {
	request  Request
	subject  *policy.Subject
	former   former
	plan     set.Plan
	images   []policy.Image       // that have a verdict
	uses     []workload.Use       // as in the object
	mutated  []policy.RuleResult  // of the mutation rules
	patch    []workload.Operation // the operations of mutation rules
	changed  workload.Object      // the object after mutation; zero if unchanged
	reasons  []policy.Reason
	warnings []policy.Reason
	tasks    []task // of the plan's checks, in their order
	identity workload.Identity
	started  time.Time
	memory   *memory
	mirrors  mirrors
	verdicts []Verdict // of images, once concluded
	// judged are the decisions of judges, by the check's place in the plan.
	judged map[int]policy.Decision
	// overriding holds the overrides that apply; nil for none. overridden holds their extra
	// lookups, by the image's pointer, and spared the images that an Allow matches and that
	// judges do not see any more.
	overriding *set.Overriding
	overridden map[string]*overridden
	spared     map[string]bool
}

// task is the evaluation of one check: its part of a work, or the reason why there is
// none.
type task struct {
	work *work
	at   int   // the check's place in the work
	err  error // credentials that could not be had
}

// plan finds the object's images and asks the policies about them.
func (j *journey) plan(ctx context.Context, request Request) *planned {
	p := &planned{request: request, subject: request.subject(), former: formerOf(request), memory: j.gate.memory, started: j.gate.options.now()}
	p.subject.Time = p.started
	if err := p.mutate(ctx, j.snapshot.Policies); err != nil {
		p.reasons = append(p.reasons, policy.Reason{
			Code: policy.Malformed, Message: err.Error(), Hint: "correct the mutation rules that speak of it, or make the object as they want it",
		})
		return p
	}
	p.overriding = j.snapshot.Policies.Overriding(p.subject)
	if !request.Anonymous {
		p.identity = workload.IdentityOf(request.Object)
		p.identity.Namespace = p.subject.Namespace
	}
	p.mirrors = newMirrors(j, p)
	if !p.request.Stage.images() {
		return p
	}
	standard, err := p.standard()
	if err != nil {
		p.malformed("", err)
		return p
	}
	named := p.mirrors.named(standard)
	p.plan = j.snapshot.Policies.Plan(ctx, p.subject, func(extractors []policy.Extractor) ([]policy.Image, error) {
		if len(extractors) == 0 {
			return named, nil
		}
		found, err := p.find(extractors)
		return p.mirrors.named(found), err
	})
	for i := range p.plan.Results {
		if result := &p.plan.Results[i]; result.Err != nil {
			result.Err = deadline.Mark(ctx, result.Err)
			if ownTime(ctx) {
				result.Err = overlong{result.Err}
			}
		}
	}
	p.leaveUnchanged(ctx, standard)
	defer waiting.Begin(ctx)() // for credentials
	p.tasks = make([]task, len(p.plan.Checks))
	who := identityKey(p.identity)
	for i := range p.plan.Checks {
		check := &p.plan.Checks[i]
		p.remember(asWritten(check.Image))
		if check.NeedsDigest() {
			p.tasks[i] = j.work(ctx, check, p.wayOf(check.Image), p.identity, who)
		}
	}
	p.planMirrors(ctx, j, who)
	return p
}

// standard returns the images of a pod specification. One that cannot be read
// denies the object, and the others are judged all the same.
func (p *planned) standard() ([]policy.Image, error) {
	uses, err := workload.Extract(p.request.Object)
	if err != nil {
		return nil, err
	}
	if err := checkCount(uses); err != nil {
		return nil, err
	}
	images := make([]policy.Image, 0, len(uses))
	for _, use := range uses {
		found, err := p.imageOf(use, p.former.ran(use))
		switch {
		case err == nil:
			images = append(images, found)
		case found.Unchanged:
			p.warnings = append(p.warnings, policy.Reason{
				Code: policy.Unchanged, Path: use.Pointer, Message: "the image cannot be read, and the object had it before the update: " + err.Error(),
			})
		default:
			p.malformed(use.Pointer, err)
		}
	}
	p.images = images[:len(images):len(images)]
	return images, nil
}

// find returns the images at a rule's extractors. Only the rule declares that these fields
// hold images, so a reference that cannot be parsed is the rule's error.
func (p *planned) find(extractors []policy.Extractor) ([]policy.Image, error) {
	places := places(extractors)
	uses, err := workload.ExtractWith(p.request.Object, places)
	if err == nil {
		err = checkCount(uses)
	}
	if err != nil {
		return nil, unreadable{err}
	}
	old := p.former.at(places)
	exact := make(map[string]policy.Extractor, len(extractors))
	for _, e := range extractors {
		if e.Ambiguous || e.Fresh {
			exact[e.Path] = e
		}
	}
	var images []policy.Image
	for _, use := range uses {
		text, stood := old[use.Pointer]
		found, err := p.imageOf(use, stood && text == use.Text && !exact[use.Pointer].Fresh)
		found.Ambiguous = exact[use.Pointer].Ambiguous
		if err != nil && !found.Unchanged {
			return nil, unreadable{fmt.Errorf("%s: %w", use.Pointer, err)}
		}
		if err == nil {
			images = append(images, found)
		}
	}
	return images, nil
}

// maxUses bounds the images of one object. Pods have a few dozen containers at most,
// and each image is compared with all others.
const maxUses = 500

func checkCount(uses []workload.Use) error {
	if len(uses) > maxUses {
		return fmt.Errorf("it names %d images, more than %d: make several objects of it", len(uses), maxUses)
	}
	return nil
}

// imageOf reads a use and notes it for pinning.
func (p *planned) imageOf(use workload.Use, unchanged bool) (policy.Image, error) {
	ref, err := p.memory.parse(use.Image)
	if err == nil {
		p.uses = append(p.uses, use)
	}
	return policy.Image{Container: use.Container, Role: string(use.Role), Pointer: use.Pointer, Ref: ref, Unchanged: unchanged}, err
}

// remember adds an image to the verdicts, each location once.
func (p *planned) remember(found policy.Image) {
	if !slices.ContainsFunc(p.images, func(i policy.Image) bool { return i.Pointer == found.Pointer }) {
		p.images = append(p.images, found)
	}
}

// malformed notes, once for each place, that an image cannot be read.
func (p *planned) malformed(pointer string, err error) {
	if pointer != "" && slices.ContainsFunc(p.reasons, func(r policy.Reason) bool { return r.Path == pointer }) {
		return
	}
	p.reasons = append(p.reasons, policy.Reason{
		Code: policy.Malformed, Path: pointer, Message: err.Error(), Hint: "write the image as [registry/]repository[:tag][@digest]",
	})
}

func places(extractors []policy.Extractor) []workload.Extractor {
	out := make([]workload.Extractor, len(extractors))
	for i, e := range extractors {
		out[i] = workload.Extractor{Name: e.Name, Path: e.Path, Value: e.Value, Key: e.Key, Transform: e.Transform}
	}
	return out
}

// pins returns the references of the object's images.
func (p *planned) pins() pins {
	return pins{own: p.request.Pinning, bare: p.subject.Bare, uses: p.uses}
}

// settle builds the outcome of an object from the results.
func (p *planned) settle(ctx context.Context, j *journey) Outcome {
	_, decided := j.gate.memory.evaluator.Begin(ctx, PhaseDecide)
	defer decided()
	out := Outcome{
		Subject: p.subject, Object: p.request.Object, Source: p.request.Object.Source(), Changed: p.changed, Rules: p.plan.Results,
		Reasons: p.reasons, Warnings: p.warnings,
		PolicyHash: j.snapshot.Policies.Hash(), TrustGeneration: j.snapshot.Prover.Generation(), MirrorHash: j.snapshot.Mirrors.Hash(),
		Verdicts: make([]Verdict, 0, len(p.images)),
	}
	for i := range p.images {
		out.Verdicts = append(out.Verdicts, p.conclude(i))
	}
	slices.SortStableFunc(out.Verdicts, func(a, b Verdict) int { return cmp.Compare(a.Image.Pointer, b.Image.Pointer) })
	out.Cost = p.cost()
	p.annotate(&out)
	settleRules(&out)
	settleOutcome(&out)
	p.hold(&out, p.mutated)
	if out.Result == Allow {
		out.Patch, out.Mutations = slices.Clone(p.patch), len(p.patch)
	}
	p.pins().pin(&out)
	p.validate(ctx, j.snapshot.Policies, &out)
	p.addPullSecrets(&out)
	out.markUnchecked()
	out.Duration = j.gate.options.now().Sub(p.started)
	return out
}

// conclude returns the verdict on the image at a position, the same each time.
func (p *planned) conclude(i int) Verdict {
	if p.verdicts == nil {
		p.verdicts = make([]Verdict, len(p.images))
		for at, found := range p.images {
			p.verdicts[at] = p.verdict(found)
		}
	}
	return p.verdicts[i]
}

// verdict collects the decisions about one image.
func (p *planned) verdict(found policy.Image) Verdict {
	v := Verdict{Image: found, Cost: Cost{RateLimitRemaining: -1}}
	var tasks []task          // of the decisions
	var stale time.Time       // verification time of the oldest fact in use
	var differs *policy.Check // its credentials resolve another digest
	firm := false             // the digest is that of a check which enforces
	byLast := false           // the digest comes from a stale entry
	for i := range p.plan.Checks {
		check := &p.plan.Checks[i]
		if check.Image.Pointer != found.Pointer {
			continue
		}
		v.Decisions = append(v.Decisions, p.decide(i))
		tasks = append(tasks, p.tasks[i])
		w := p.tasks[i].work
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
		v.Decisions[i] = p.pins().withDigest(v.Decisions[i], tasks[i])
	}
	p.resolved(&v)
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

// decide judges one check of the plan.
func (p *planned) decide(i int) policy.Decision {
	check, t := &p.plan.Checks[i], p.tasks[i]
	undecided := func(reason policy.Reason) policy.Decision {
		return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{reason}}
	}
	switch {
	case check.Judge != nil:
		return p.pins().pinsLast(check, t, p.judgedAs(i))
	case t.err != nil:
		return undecided(errorReason(t.err, check.Entry))
	case t.work == nil:
		return decide.Check(check, nil)
	case t.work.result == nil:
		return undecided(policy.LookReason(t.work.unfinished(), check.Entry))
	}
	return p.pins().pinsLast(check, t, t.work.result.Decide(t.at))
}

// cost sums the cost of the object's references, each once.
func (p *planned) cost() Cost {
	total := Cost{RateLimitRemaining: -1}
	for i, t := range p.tasks {
		if t.work != nil && !slices.ContainsFunc(p.tasks[:i], func(before task) bool { return before.work == t.work }) {
			total = total.Add(t.work.cost())
		}
	}
	return p.overrideCost(p.mirrors.cost(total))
}
