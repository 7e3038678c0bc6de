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

// Of returns the results of a decision. Rules on images come first, one result for each matching
// image, in the order of images. Rules on the object follow, one result each, in the order of
// policies. Of the entries of one rule for an image, the worst is used, with the messages of all that are
// as bad. Rules without a result for the object are left out. An image that an override allows has
// an exception from the rules that fail it, and an image that one denies has a result of the override.
func Of(d report.Decided) []Result {
	var results []Result
	for i := range d.Outcome.Verdicts {
		results = append(results, ofVerdict(&d.Outcome.Verdicts[i], d.Outcome.AuditAnnotations)...)
	}
	for i := range d.Outcome.Rules {
		if rule := &d.Outcome.Rules[i]; rule.Policy != nil && speaks(rule) {
			results = append(results, ofRule(rule, d.Occasion.Process))
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

// ofRule is the result of a rule. A scan applies no mutation: one that would change nothing is in effect.
func ofRule(r *policy.RuleResult, by report.Process) Result {
	made := newResult(r.Policy, r.Rule)
	made.Enforced = !r.Action.Admits()
	made.describe(r.Properties, r.AuditAnnotations)
	made.except(append([]*policy.Exception{r.Exception}, r.Others...)...)
	switch {
	case r.Err != nil:
		made.Status, made.Code, made.Message = Error, policy.PolicyError, r.Err.Error()
	case r.Kind == policy.MutateRule && (r.Skip == "" || r.Unchanged && by == report.ProcessScan) && r.Ruling.Passes():
		made.Status, made.Message = Pass, mutated(r.Changed, by)
	case r.Skip != "":
		made.Status, made.Message = Skip, r.Skip
	default:
		made.Status = statusOf(r.Ruling.Result, r.Action, r.Policy)
		made.explain(r.Ruling.Reasons)
	}
	return made
}

func mutated(changed bool, by report.Process) string {
	switch {
	case !changed:
		return "the object is as the rule makes it"
	case by == report.ProcessScan:
		return "the rule would change the object, which was there before the rule or was changed since"
	}
	return "the rule changed the object"
}

// ofVerdict has the audit annotations of all policies, by the policy's ID and the key.
func ofVerdict(v *gate.Verdict, annotations map[string]string) []Result {
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
		made.describe(decision.Check.Properties, annotationsOf(decision.Check, annotations))
		made.except(decision.Check.Exception)
		made.explain(decision.Reasons)
		key := made.Key()
		same := slices.IndexFunc(results, func(r Result) bool { return r.Key() == key })
		switch {
		case same < 0:
			results = append(results, made)
		case rank(made.Status) > rank(results[same].Status):
			results[same] = made
		case made.Status == results[same].Status && made.Status != Pass && made.Status != Skip && !strings.Contains(results[same].Message, made.Message):
			results[same].Message += "; " + made.Message
		}
	}
	return overrule(results, v)
}

// annotationsOf returns the audit annotations of the check's policy. Only a judge makes some of an image.
func annotationsOf(c *policy.Check, all map[string]string) map[string]string {
	if c.Judge == nil || c.Policy == nil {
		return nil
	}
	own := map[string]string{}
	for path, value := range all {
		if key, is := strings.CutPrefix(path, c.Policy.ID()+"/"); is {
			own[key] = value
		}
	}
	return own
}

// describe adds properties that are not there yet.
func (r *Result) describe(properties ...map[string]string) {
	for _, of := range properties {
		if len(of) > 0 {
			words := maps.Clone(of)
			maps.Copy(words, r.Properties)
			r.Properties = words
		}
	}
}

// except records the exceptions that exempt the object, of which some may be nil, with their
// properties. A property of the rule overrides one of an exception with the same name.
func (r *Result) except(by ...*policy.Exception) {
	var names []string
	for _, e := range by {
		if e != nil {
			names = append(names, e.ID())
			r.describe(e.Properties)
		}
	}
	r.Exception = strings.Join(names, ",")
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
			Severity: p.Severity, Hash: p.Hash, Unscored: p.Unscored, Unreported: p.Unreported,
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
