package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/gate/internal/panics"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
)

// ask asks a check about one digest: its judge, where it has one, about this image
// alone.
func (w *work) ask(ctx context.Context, check *policy.Check, about image.Pinned) policy.Decision {
	if _, decided := policy.Decided(check); decided || check.Judge == nil {
		return decide.Check(check, w.answersFor(about.Digest()))
	}
	return judge(ctx, check.Judge, []policy.Given{w.given(check, about)}).Decisions[0]
}

// given is a judge's input about one image by one digest.
func (w *work) given(check *policy.Check, about image.Pinned) policy.Given {
	return policy.Given{Check: check, Pinned: w.pinned, Answers: w.answersFor(about.Digest()), Data: w.data, DataErr: w.dataErr}
}

// judge runs a judge and validates its result: one decision for each image, each with a
// reason. A panic becomes an error.
func judge(ctx context.Context, by policy.Judge, given []policy.Given) policy.Judgement {
	var judged policy.Judgement
	err := panics.Catch(func() { judged = by.Judge(ctx, given) })
	if err == nil && len(judged.Decisions) != len(given) {
		err = fmt.Errorf("%d decisions about %d images; this is a defect", len(judged.Decisions), len(given))
	}
	if err != nil {
		reason := policy.Reason{Code: policy.Internal, Message: err.Error()}
		judged = policy.Judgement{Decisions: make([]policy.Decision, len(given))}
		for i := range given {
			judged.Decisions[i] = policy.Decision{Result: policy.Indeterminate, Reasons: []policy.Reason{reason}}
		}
		judged.Object = policy.Ruling{Result: policy.Indeterminate, Reasons: []policy.Reason{reason}}
	}
	for i := range judged.Decisions {
		d := &judged.Decisions[i]
		d.Check = given[i].Check
		known := d.Result == policy.Pass || d.Result == policy.Fail || d.Result == policy.Indeterminate || d.Result == policy.Skipped
		if !known || len(d.Reasons) == 0 {
			d.Reasons = []policy.Reason{{
				Code: policy.Internal, Path: d.Check.Entry,
				Message: fmt.Sprintf("a decision %q with %d reasons, which is a defect", d.Result, len(d.Reasons)),
			}}
			d.Result = policy.Indeterminate
		}
	}
	return judged
}

// judge asks the judges of the plan's rules about all images together.
func (p *planned) judge(ctx context.Context) {
	for r := range p.plan.Results {
		result := &p.plan.Results[r]
		if result.Judge == nil {
			continue
		}
		var (
			given  []policy.Given
			places []int
		)
		for i := range p.plan.Checks {
			check := &p.plan.Checks[i]
			if check.Judge != result.Judge || p.spared[check.Image.Pointer] {
				continue
			}
			if _, decided := policy.Decided(check); !decided {
				given, places = append(given, p.given(i)), append(places, i)
			}
		}
		judged := judge(ctx, result.Judge, given)
		judged.Object.Reasons = overlongReasons(ctx, judged.Object.Reasons)
		for n := range judged.Decisions {
			judged.Decisions[n].Reasons = overlongReasons(ctx, judged.Decisions[n].Reasons)
		}
		result.Ruling, result.AuditAnnotations = judged.Object, judged.AuditAnnotations
		if p.judged == nil {
			p.judged = make(map[int]policy.Decision, len(p.plan.Checks))
		}
		for n, i := range places {
			p.judged[i] = p.judgedOn(i, judged.Decisions[n], given[n])
		}
	}
}

// given is the judge's input for one check of the plan.
func (p *planned) given(i int) policy.Given {
	check, t := &p.plan.Checks[i], p.tasks[i]
	unseen := func(err error) policy.Given {
		return policy.Given{Check: check, Err: err, DataErr: err, Answers: func(policy.Question) policy.Answer {
			return policy.Answer{Gaps: []error{err}}
		}}
	}
	switch {
	case t.err != nil:
		return unseen(t.err)
	case t.work == nil: // it asks nothing
		return policy.Given{Check: check, Answers: func(policy.Question) policy.Answer {
			return policy.Answer{Gaps: []error{errors.New("the question was never asked; this is a defect")}}
		}}
	case !t.work.finished:
		return unseen(t.work.unfinished())
	case t.work.err != nil:
		return unseen(t.work.err)
	case t.work.provedUpward(t.at):
		return t.work.given(check, t.work.parent.index)
	}
	return t.work.given(check, t.work.pinned)
}

// judgedOn keeps a judge from passing an image without its required digest, and reports
// where the index was verified instead of the child.
func (p *planned) judgedOn(i int, decision policy.Decision, given policy.Given) policy.Decision {
	check, t := &p.plan.Checks[i], p.tasks[i]
	switch {
	case decision.Result != policy.Pass:
	case given.Err != nil && check.NeedsDigest():
		decision.Result, decision.Facts = policy.Indeterminate, nil
		decision.Reasons = []policy.Reason{errorReason(given.Err, check.Entry)}
		if _, fetched := errors.AsType[image.Failure](given.Err); fetched {
			decision.Reasons[0] = policy.LookReason(given.Err, check.Entry)
		}
	case t.work != nil && given.Err == nil && t.work.provedUpward(t.at):
		return t.work.listed(decision)
	}
	return decision
}

// judgedAs returns a judge's decision on a check of the plan.
func (p *planned) judgedAs(i int) policy.Decision {
	if decision, ok := policy.Decided(&p.plan.Checks[i]); ok {
		return decision
	}
	if decision, ok := p.judged[i]; ok {
		return decision
	}
	return decide.Check(&p.plan.Checks[i], nil)
}

// judge runs the judges of all objects. Where a judge does not pass an image on the cached
// claims alone, peers and registries are asked as well.
func (j *journey) judge(ctx context.Context, plans []*planned) {
	var again []*planned
	open := map[*work]bool{}
	for _, p := range plans {
		if p == nil {
			continue
		}
		p.judge(ctx)
		if wanting := p.wanting(open); wanting {
			again = append(again, p)
		}
	}
	if len(open) == 0 {
		return
	}
	works := make([]*work, 0, len(open))
	for _, w := range j.order {
		if open[w] {
			w.forgetGaps()
			w.finished, w.partial = false, false
			works = append(works, w)
		}
	}
	j.runAll(ctx, works, func(w *work) { w.finished = true })
	for _, p := range again {
		p.judge(ctx)
	}
}

// wanting marks the works that the cache answered in part, if a judge does not pass one of
// their checks.
func (p *planned) wanting(open map[*work]bool) bool {
	found := false
	for i, decision := range p.judged {
		if w := p.tasks[i].work; w != nil && w.partial && decision.Result != policy.Pass {
			open[w], found = true, true
		}
	}
	for _, result := range p.plan.Results {
		if result.Judge == nil || result.Ruling.Passes() {
			continue
		}
		for i := range p.judged {
			if w := p.tasks[i].work; w != nil && w.partial {
				open[w], found = true, true
			}
		}
	}
	return found
}

// annotate collects the audit annotations of policies, and drops the rules that their
// decisions about images express fully.
func (p *planned) annotate(o *Outcome) {
	for i := range o.Rules {
		rule := &o.Rules[i]
		for key, value := range rule.AuditAnnotations {
			if o.AuditAnnotations == nil {
				o.AuditAnnotations = map[string]string{}
			}
			o.AuditAnnotations[rule.Policy.ID()+"/"+key] = value
		}
	}
	o.Rules = slices.DeleteFunc(o.Rules, func(r policy.RuleResult) bool {
		return r.Judge != nil && r.Ruling.Passes() && slices.ContainsFunc(p.plan.Checks, func(c policy.Check) bool { return c.Judge == r.Judge })
	})
}
