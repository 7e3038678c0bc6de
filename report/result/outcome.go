package result

import (
	"maps"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/verify"
)

// Of returns the results of a decision. Rules on the object come first, one result each, in the
// order of policies. Rules on images follow, one result for each matching image, in the order of
// images. Of the entries of one rule for an image, the worst is used. Rules without a result for
// the object are left out. An image that an override allows has an exception from the rules that
// fail it, and an image that one denies has a result of the override.
func Of(d report.Decided) []Result {
	var results []Result
	for i := range d.Outcome.Verdicts {
		results = append(results, ofVerdict(&d.Outcome.Verdicts[i])...)
	}
	for i := range d.Outcome.Rules {
		if rule := &d.Outcome.Rules[i]; rule.Policy != nil && speaks(rule) {
			results = append(results, ofRule(rule))
		}
	}
	resource, process := d.Resource(), d.Occasion.Process
	if d.Occasion.Shadow {
		process = report.ProcessShadow
	}
	for i := range results {
		results[i].Resource, results[i].Time, results[i].Process = resource, d.Occasion.Time, process
	}
	return results
}

// speaks reports whether a rule without image checks has a result.
func speaks(r *policy.RuleResult) bool {
	return r.Err != nil || r.OfObject() || r.Exception != nil
}

func ofRule(r *policy.RuleResult) Result {
	made := newResult(r.Policy, r.Rule)
	made.Properties, made.Enforced = r.Properties, !r.Action.Admits()
	made.except(r.Exception)
	switch {
	case r.Err != nil:
		made.Status, made.Code, made.Message = Error, policy.PolicyError, r.Err.Error()
	case r.Skip != "":
		made.Status, made.Message = Skip, r.Skip
	default:
		made.Status = statusOf(r.Ruling.Result, r.Action, r.Policy)
		made.explain(r.Ruling.Reasons)
	}
	return made
}

func ofVerdict(v *gate.Verdict) []Result {
	var results []Result
	for i := range v.Decisions {
		decision := &v.Decisions[i]
		made := newResult(decision.Check.Policy, decision.Check.Rule)
		made.Status = statusOf(decision.Result, decision.Check.Action, decision.Check.Policy)
		made.Enforced = !decision.Check.Action.Admits()
		made.Image = imageOf(v)
		if len(decision.Facts) > 0 {
			made.Image.Signer, made.Image.Evidence = proofOf(decision.Facts[0])
		}
		made.except(decision.Check.Exception)
		made.explain(decision.Reasons)
		key := made.Key()
		same := slices.IndexFunc(results, func(r Result) bool { return r.Key() == key })
		switch {
		case same < 0:
			results = append(results, made)
		case rank(made.Status) > rank(results[same].Status):
			results[same] = made
		}
	}
	return overrule(results, v)
}

// except records the exception, which may be nil, with its properties. A property of the
// rule overrides one of the exception with the same name.
func (r *Result) except(e *policy.Exception) {
	if e == nil {
		return
	}
	r.Exception = e.ID()
	if len(e.Properties) > 0 {
		words := maps.Clone(e.Properties)
		maps.Copy(words, r.Properties)
		r.Properties = words
	}
}

// overrule applies an override to an image's results: an Allow is an exception from failures, and
// a Deny fails as a policy of its own.
func overrule(results []Result, v *gate.Verdict) []Result {
	o := v.Override
	if o == nil {
		return results
	}
	var said policy.Reason
	if len(v.Reasons) > 0 {
		said = v.Reasons[0]
	}
	if o.Effect == policy.OverrideDeny {
		return append(results, Result{
			Policy: Policy{Kind: OverrideKind, Name: o.Name, Hash: o.Hash}, Rule: "deny", Image: imageOf(v),
			Status: Fail, Enforced: true, Code: said.Code, Message: said.Message,
		})
	}
	for i := range results {
		if r := &results[i]; r.Enforced && r.Status != Pass && r.Status != Skip {
			r.Status, r.Exception, r.Code, r.Message = Skip, o.ID(), said.Code, said.Message
		}
	}
	return results
}

func imageOf(v *gate.Verdict) *Image {
	return &Image{Container: v.Image.Container, Written: v.Image.Ref.Written(), Digest: v.Pinned.Digest().String()}
}

func newResult(p *policy.Policy, rule string) Result {
	return Result{
		Policy: Policy{
			Kind: p.Kind, Namespace: p.Namespace, Name: p.Name, Title: p.Title, Category: p.Category,
			Severity: p.Severity, Hash: p.Hash, Unscored: p.Unscored,
		},
		Rule: rule,
	}
}

// explain sets the code of the most severe reason, and the distinct messages of all of them.
func (r *Result) explain(reasons []policy.Reason) {
	var words []string
	for _, reason := range reasons {
		if !slices.Contains(words, reason.Message) {
			words = append(words, reason.Message)
		}
	}
	if len(reasons) > 0 {
		r.Code, r.Message = reasons[0].Code, strings.Join(words, "; ")
	}
}

func statusOf(result policy.Result, action policy.Action, p *policy.Policy) Status {
	switch result {
	case policy.Pass, "":
		return Pass
	case policy.Skipped:
		return Skip
	case policy.Indeterminate:
		return Error
	default:
		if p.Unscored || action == policy.Warn {
			return Warn
		}
		return Fail
	}
}

// rank orders statuses of one rule for one image, the most severe last.
func rank(s Status) int {
	return slices.Index([]Status{Skip, Pass, Warn, Error, Fail}, s)
}

func proofOf(f verify.Fact) (signer, evidence string) {
	where := report.Found{Repository: f.Origin.Repository.String(), Via: f.Origin.Via, Manifest: f.Origin.Manifest}
	return f.Signer.String(), where.String()
}
