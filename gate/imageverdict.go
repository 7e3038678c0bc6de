package gate

import (
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate/claims"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/verify"
)

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
	enforced := false                 // the digest is that of a check which enforces
	isStale := false                  // the digest comes from a stale entry
	for i := range p.checks.Checks {
		check := &p.checks.Checks[i]
		if check.Image.Pointer != found.Pointer {
			continue
		}
		v.Decisions = append(v.Decisions, p.checks.decide(i, p.pins()))
		evaluations = append(evaluations, p.checks.evaluations[i])
		evaluation := p.checks.evaluations[i].image
		if evaluation == nil || evaluation.result == nil {
			continue
		}
		if !slices.ContainsFunc(evaluations[:len(evaluations)-1], func(before checkEvaluation) bool { return before.image == evaluation }) {
			v.Cost, v.Duration = v.Cost.Add(evaluation.cost()), max(v.Duration, evaluation.result.Duration)
		}
		stale = claims.Earlier(stale, evaluation.result.StaleSince())
		isStale = isStale || evaluation.result.IsStale && check.NeedsProof() && !check.Action.Admits()
		switch {
		case evaluation.result.Err != nil || asWritten(check.Image).Ref != found.Ref:
		case v.Pinned.IsZero() || !enforced && !check.Action.Admits():
			v.Pinned, enforced = evaluation.result.Pinned, !check.Action.Admits()
		case v.Pinned.Digest() != evaluation.result.Pinned.Digest() && !check.Action.Admits():
			differs = check
		}
	}
	policy.Require(v.Decisions)
	decide.Ages(v.Decisions, func(i int) *verify.Fact { return evaluations[i].image.result.Evidence().First(v.Decisions[i]) })
	for i := range v.Decisions {
		v.Decisions[i] = p.pins().withDigest(v.Decisions[i], evaluations[i])
	}
	p.mirrors.of(v.Image.Ref).resolved(&v)
	settle(&v)
	p.overrule(&v)
	if isStale {
		p.pins().pinStale(&v)
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
