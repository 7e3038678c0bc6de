package gate

import (
	"context"
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/gate/evaluate"
	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
)

// judge asks the judges of the plan's rules about all images together.
func (c *checks) judge(ctx context.Context) {
	for r := range c.Results {
		result := &c.Results[r]
		if result.Judge == nil {
			continue
		}
		var (
			given  []policy.Given
			places []int
		)
		for i := range c.Checks {
			check := &c.Checks[i]
			if check.Judge != result.Judge || c.exempt[check.Image.Pointer] {
				continue
			}
			if _, decided := policy.Decided(check); !decided {
				given, places = append(given, c.given(i)), append(places, i)
			}
		}
		judged := evaluate.Judge(ctx, result.Judge, given)
		judged.Object.Reasons = deadline.Reasons(ctx, judged.Object.Reasons)
		for n := range judged.Decisions {
			judged.Decisions[n].Reasons = deadline.Reasons(ctx, judged.Decisions[n].Reasons)
		}
		result.Ruling, result.AuditAnnotations = judged.Object, judged.AuditAnnotations
		if c.judged == nil {
			c.judged = make(map[int]policy.Decision, len(c.Checks))
		}
		for n, i := range places {
			c.judged[i] = c.judgedOn(i, judged.Decisions[n], given[n])
		}
	}
}

// given is the judge's input for one check of the plan.
func (c *checks) given(i int) policy.Given {
	check, evaluation := &c.Checks[i], c.evaluations[i]
	switch {
	case evaluation.err != nil:
		return evaluate.Unasked(check, evaluation.err)
	case evaluation.image == nil: // it asks nothing
		return evaluate.Unqueried(check)
	case evaluation.image.result == nil:
		return evaluate.Unasked(check, evaluation.image.unfinished())
	}
	return evaluation.image.result.Given(evaluation.at)
}

// judgedOn keeps a judge from passing an image without its required digest, and reports
// where the index was verified instead of the child.
func (c *checks) judgedOn(i int, decision policy.Decision, given policy.Given) policy.Decision {
	check, evaluation := &c.Checks[i], c.evaluations[i]
	switch {
	case decision.Result != policy.Pass:
	case given.Err != nil && check.NeedsDigest():
		decision.Result, decision.Facts = policy.Indeterminate, nil
		decision.Reasons = []policy.Reason{deadline.Reason(given.Err, check.Entry)}
		if _, fetched := errors.AsType[image.Failure](given.Err); fetched {
			decision.Reasons[0] = policy.LookReason(given.Err, check.Entry)
		}
	case evaluation.image != nil && given.Err == nil:
		return evaluation.image.result.Judged(evaluation.at, decision)
	}
	return decision
}

// judgedAs returns a judge's decision on a check of the plan.
func (c *checks) judgedAs(i int) policy.Decision {
	if decision, ok := policy.Decided(&c.Checks[i]); ok {
		return decision
	}
	if decision, ok := c.judged[i]; ok {
		return decision
	}
	return decide.Check(&c.Checks[i], nil)
}

// incomplete marks the evaluations that the cache answered in part, if a judge does not pass one of
// their checks.
func (c *checks) incomplete(open map[*imageEvaluation]bool) bool {
	found := false
	for i, decision := range c.judged {
		if evaluation := c.evaluations[i].image; evaluation.isPartial() && decision.Result != policy.Pass {
			open[evaluation], found = true, true
		}
	}
	for _, result := range c.Results {
		if result.Judge == nil || result.Ruling.Passes() {
			continue
		}
		for i := range c.judged {
			if evaluation := c.evaluations[i].image; evaluation.isPartial() {
				open[evaluation], found = true, true
			}
		}
	}
	return found
}

// decide judges one check of the plan.
func (c *checks) decide(i int, pins pins) policy.Decision {
	check, evaluation := &c.Checks[i], c.evaluations[i]
	undecided := func(reason policy.Reason) policy.Decision {
		return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{reason}}
	}
	switch {
	case check.Judge != nil:
		return pins.withdrawStale(check, evaluation, c.judgedAs(i))
	case evaluation.err != nil:
		return undecided(deadline.Reason(evaluation.err, check.Entry))
	case evaluation.image == nil:
		return decide.Check(check, nil)
	case evaluation.image.result == nil:
		return undecided(policy.LookReason(evaluation.image.unfinished(), check.Entry))
	}
	return pins.withdrawStale(check, evaluation, evaluation.image.result.Decide(evaluation.at))
}

// evaluationsOf returns the evaluations of an image, and whether one of them requires verification.
func (c *checks) evaluationsOf(found policy.Image) (proves bool, evaluations []checkEvaluation) {
	for i := range c.Checks {
		check := &c.Checks[i]
		if check.Image.Pointer != found.Pointer {
			continue
		}
		proves = proves || check.NeedsProof()
		if evaluation := c.evaluations[i]; evaluation.image != nil || evaluation.err != nil {
			evaluations = append(evaluations, evaluation)
		}
	}
	return proves, evaluations
}

// isUnasked reports whether a rule could not be evaluated for the object.
func (c *checks) isUnasked() bool {
	return slices.ContainsFunc(c.Results, func(r policy.RuleResult) bool { return r.Err != nil })
}

// annotate collects the audit annotations of policies with rules about images, and drops the
// rules that their decisions about images express fully.
func (c *checks) annotate(o *Outcome) {
	o.annotate(o.Rules)
	o.Rules = slices.DeleteFunc(o.Rules, func(r policy.RuleResult) bool {
		return r.Judge != nil && r.Ruling.Passes() && slices.ContainsFunc(c.Checks, func(c policy.Check) bool { return c.Judge == r.Judge })
	})
}

// judge runs the judges of all objects. Where a judge does not pass an image on the cached
// claims alone, peers and registries are asked as well.
func (b *batch) judge(ctx context.Context, plans []*objectEvaluation) {
	var again []*objectEvaluation
	open := map[*imageEvaluation]bool{}
	for _, p := range plans {
		if p == nil {
			continue
		}
		p.checks.judge(ctx)
		if isIncomplete := p.checks.incomplete(open); isIncomplete {
			again = append(again, p)
		}
	}
	if len(open) == 0 {
		return
	}
	evaluations := make([]*imageEvaluation, 0, len(open))
	for _, evaluation := range b.order {
		if open[evaluation] {
			evaluation.result = nil
			evaluations = append(evaluations, evaluation)
		}
	}
	b.runAll(ctx, evaluations, func() {})
	for _, p := range again {
		p.checks.judge(ctx)
	}
}
