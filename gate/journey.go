package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

// Decide judges one object. It always answers: what could not be done is a
// reason in the outcome.
func (g *Gate) Decide(ctx context.Context, request Request) Outcome {
	return g.DecideAll(ctx, []Request{request}, nil)[0]
}

// DecideAll judges objects together, by one snapshot: a reference that several
// of them use is resolved and proved once. The outcomes stand in the order of
// the requests; progress, if given, is told after each of the references how many
// are done, from one goroutine at a time.
func (g *Gate) DecideAll(ctx context.Context, requests []Request, progress func(done, total int)) []Outcome {
	outcomes := make([]Outcome, len(requests))
	snapshot, err := g.state.Snapshot(ctx)
	if err != nil {
		for i, request := range requests {
			outcomes[i] = failed(request, policy.Reason{Code: policy.PolicyError, Message: err.Error()})
		}
		return outcomes
	}
	ctx, cancel := context.WithTimeout(ctx, g.options.timeout)
	defer cancel()

	trip := &journey{gate: g, snapshot: snapshot, works: map[workKey]*work{}}
	plans := make([]*planned, len(requests))
	for i, request := range requests {
		plans[i] = trip.plan(ctx, request)
	}
	trip.run(ctx, progress)
	for i, p := range plans {
		outcomes[i] = p.settle(trip)
	}
	return outcomes
}

// failed is the outcome of an object that nobody could look at.
func failed(request Request, reason policy.Reason) Outcome {
	return Outcome{Subject: request.subject(), Source: request.Object.Source(), Answer: Unable, Reasons: []policy.Reason{reason}}
}

// journey is the state of one call: what must be found out, once each.
type journey struct {
	gate     *Gate
	snapshot Snapshot
	works    map[workKey]*work
	order    []*work
}

type workKey struct{ scope, ref string }

// planned is one object with its images and the checks that concern them.
type planned struct {
	request  Request
	subject  *policy.Subject
	plan     policy.Plan
	images   []policy.Image
	reasons  []policy.Reason
	works    map[*policy.Check]*work
	identity workload.Identity
	refused  map[*policy.Check]error // credentials that could not be had
	started  time.Time
}

// plan finds the object's images and asks the policies about them.
func (j *journey) plan(ctx context.Context, request Request) *planned {
	p := &planned{request: request, subject: request.subject(), works: map[*policy.Check]*work{}, refused: map[*policy.Check]error{}, started: j.gate.options.now()}
	p.subject.Time = p.started
	p.identity = workload.IdentityOf(request.Object)
	p.identity.Namespace = p.subject.Namespace
	standard, err := p.standard()
	if err != nil {
		p.malformed("", err)
		return p
	}
	p.plan = j.snapshot.Policies.Plan(ctx, p.subject, func(extractors []policy.Extractor) ([]policy.Image, error) {
		if len(extractors) == 0 {
			return standard, nil
		}
		return p.find(extractors)
	})
	for i := range p.plan.Checks {
		check := &p.plan.Checks[i]
		p.remember([]policy.Image{check.Image})
		if check.NeedsDigest() {
			w, err := j.work(ctx, check, p.identity)
			if err != nil {
				p.refused[check] = err
				continue
			}
			p.works[check] = w
		}
	}
	return p
}

// standard returns the images of a pod specification. One that cannot be read
// denies the object, and the others are judged all the same.
func (p *planned) standard() ([]policy.Image, error) {
	uses, err := workload.Extract(p.request.Object)
	if err != nil {
		return nil, err
	}
	var images []policy.Image
	for _, use := range uses {
		found, err := imageOf(use)
		if err != nil {
			p.malformed(use.Pointer, err)
			continue
		}
		images = append(images, found)
	}
	p.remember(images)
	return images, nil
}

// find returns the images at a rule's extractors. What stands there is an image
// only by the rule's word, so one that cannot be read is the rule's error.
func (p *planned) find(extractors []policy.Extractor) ([]policy.Image, error) {
	uses, err := workload.ExtractWith(p.request.Object, places(extractors))
	if err != nil {
		return nil, err
	}
	var images []policy.Image
	for _, use := range uses {
		found, err := imageOf(use)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", use.Pointer, err)
		}
		images = append(images, found)
	}
	return images, nil
}

func imageOf(use workload.Use) (policy.Image, error) {
	ref, err := image.Parse(use.Image)
	return policy.Image{Container: use.Container, Role: string(use.Role), Pointer: use.Pointer, Ref: ref}, err
}

// remember keeps images for the verdicts, each place once.
func (p *planned) remember(images []policy.Image) {
	for _, found := range images {
		if !slices.ContainsFunc(p.images, func(i policy.Image) bool { return i.Pointer == found.Pointer }) {
			p.images = append(p.images, found)
		}
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

// work returns the work on a check's reference under its credentials, which
// checks of other containers, objects and policies share.
func (j *journey) work(ctx context.Context, check *policy.Check, identity workload.Identity) (*work, error) {
	ref := check.Image.Ref
	session, err := j.gate.registries.Open(ctx, Access{Credentials: check.Credentials, Workload: identity}, ref.Repository())
	if err != nil {
		return nil, fmt.Errorf("credentials: %w", err)
	}
	key := workKey{scope: session.Scope(), ref: ref.String()}
	w, ok := j.works[key]
	if !ok {
		w = &work{
			gate: j.gate, prover: j.snapshot.Prover, session: session, scope: key.scope,
			ref: ref, answers: map[question]policy.Answer{}, old: map[question]bool{},
		}
		j.works[key] = w
		j.order = append(j.order, w)
	}
	w.checks = append(w.checks, check)
	return w, nil
}

// run does all the work, several references at a time.
func (j *journey) run(ctx context.Context, progress func(done, total int)) {
	var mu sync.Mutex
	done := 0
	var group errgroup.Group
	group.SetLimit(j.gate.options.images)
	for _, w := range j.order {
		group.Go(func() error {
			w.runSafely(ctx)
			if progress != nil {
				mu.Lock()
				defer mu.Unlock()
				done++
				progress(done, len(j.order))
			}
			return nil
		})
	}
	_ = group.Wait()
}

// runSafely turns a panic into could-not-look.
func (w *work) runSafely(ctx context.Context) {
	started := w.gate.options.now()
	if err := safely(func() { w.run(ctx) }); err != nil {
		w.err = err
	}
	w.duration = w.gate.options.now().Sub(started)
}

// settle makes the outcome of an object from what was found out.
func (p *planned) settle(j *journey) Outcome {
	out := Outcome{
		Subject: p.subject, Source: p.request.Object.Source(), Rules: p.plan.Results, Reasons: p.reasons,
		PolicyHash: j.snapshot.Policies.Hash(), TrustGeneration: j.snapshot.Prover.Generation(),
		Cost: Cost{RateLimitRemaining: -1},
	}
	for _, found := range p.images {
		out.Verdicts = append(out.Verdicts, p.verdict(found))
	}
	slices.SortStableFunc(out.Verdicts, func(a, b Verdict) int { return cmp.Compare(a.Image.Pointer, b.Image.Pointer) })
	out.Cost = p.cost()
	settleRules(&out)
	settleOutcome(&out)
	out.Duration = j.gate.options.now().Sub(p.started)
	return out
}

// verdict collects the decisions about one image.
func (p *planned) verdict(found policy.Image) Verdict {
	v := Verdict{Image: found, Cost: Cost{RateLimitRemaining: -1}}
	for i := range p.plan.Checks {
		check := &p.plan.Checks[i]
		if check.Image.Pointer != found.Pointer {
			continue
		}
		w := p.works[check]
		if w == nil {
			v.Decisions = append(v.Decisions, p.alone(check))
			continue
		}
		v.Decisions = append(v.Decisions, w.decide(check))
		if w.err == nil {
			v.Pinned = w.pinned
		}
		v.Cost, v.Duration = w.session.Cost(), w.duration
	}
	settle(&v)
	return v
}

// alone decides a check that no work was done for: it needs none, or its
// credentials could not be had.
func (p *planned) alone(check *policy.Check) policy.Decision {
	if !check.NeedsDigest() {
		return policy.Decide(check, nil)
	}
	return policy.Decision{Check: check, Result: policy.Undecided, Reasons: []policy.Reason{{
		Code: policy.PolicyError, Path: check.Entry, Message: p.refused[check].Error(),
	}}}
}

// cost sums what the object's references cost, each once.
func (p *planned) cost() Cost {
	total := Cost{RateLimitRemaining: -1}
	seen := map[*work]bool{}
	for _, w := range p.works {
		if !seen[w] {
			seen[w] = true
			total = total.Add(w.session.Cost())
		}
	}
	return total
}
