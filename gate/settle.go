package gate

import (
	"cmp"
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/gate/internal/deadline"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/extract"
)

// settle turns the decisions about one image into an answer. No other code applies a
// failure setting to an error.
func settle(v *Verdict) {
	v.Result = Allow
	var certain, open []policy.Reason
	for _, decision := range v.Decisions {
		switch decision.Result {
		case policy.Pass, policy.Skipped:
			v.Pin = v.Pin || decision.Result == policy.Pass && decision.Check.MutateDigest
		case policy.Fail:
			if decision.Check.Action.Admits() {
				v.Warnings = append(v.Warnings, decision.Reasons...)
				continue
			}
			certain = append(certain, decision.Reasons...)
			v.Result = Deny
		default: // undecided, or an unknown result
			if decision.Check.Action.Admits() || decision.Check.Policy.FailOpen && mayFailOpen(decision) {
				v.Warnings = append(v.Warnings, decision.Reasons...)
				continue
			}
			open = append(open, decision.Reasons...)
			if v.Result == Allow {
				v.Result = Error
			}
		}
	}
	slices.SortStableFunc(certain, func(a, b policy.Reason) int { return cmp.Compare(a.Code.Gravity(), b.Code.Gravity()) })
	v.Reasons = slices.Concat(certain, open)
	if v.Result == Allow {
		v.Reasons = agreeing(v)
	}
}

// closed are the errors that no failure setting admits: the author of an object, or a user
// with push access, can cause them and would thereby choose "admitted". Examples: a tag is
// pushed after the pod that names it, a pull secret is corrected later, a limit is
// exceeded, a defect is triggered. Failure settings cover only the rest: no answer, or
// none in time.
var closed = []policy.Code{
	policy.ImageNotFound, policy.AccessRefused, policy.TooMuch, policy.Contradiction, policy.PolicyError, policy.CannotProve,
	policy.NoVerifiedTime, policy.Internal,
}

// mayFailOpen reports whether a failure setting may admit an image that could not be verified.
func mayFailOpen(decision policy.Decision) bool { return admitsSilence(decision.Reasons) }

func admitsSilence(reasons []policy.Reason) bool {
	return !slices.ContainsFunc(reasons, func(r policy.Reason) bool { return slices.Contains(closed, r.Code) })
}

// agreeing collects the reasons of an allowed image.
func agreeing(v *Verdict) []policy.Reason {
	if v.Image.Unchanged {
		return []policy.Reason{{Code: policy.Unchanged, Message: "the object ran this image before the update"}}
	}
	if len(v.Decisions) == 0 {
		return []policy.Reason{{Code: policy.NotConcerned, Message: "no policy matches this image"}}
	}
	var reasons []policy.Reason
	for _, decision := range v.Decisions {
		if decision.Result == policy.Pass || decision.Result == policy.Skipped {
			reasons = append(reasons, decision.Reasons...)
		}
	}
	return reasons
}

// settleRules records the failed rules, and the judges' objections to the object itself.
// The images that a failed rule matches are unknown, and an objection to the object
// applies to all of them: no image of the object is allowed then.
func settleRules(o *Outcome) {
	var against, unasked []policy.Reason // unasked: those that an Allow may still outweigh
	answer, held := Allow, Allow         // held: without those
	for i := range o.Rules {
		rule := &o.Rules[i]
		reasons, is := o.againstObject(rule)
		against, answer = append(against, reasons...), First(answer, is)
		if rule.Err != nil && rule.Kind == policy.ImageRule && is == Allow {
			o.doubtSilence()
		}
		if is == Error && isOverridable(rule) {
			unasked = append(unasked, reasons...)
		} else {
			held = First(held, is)
		}
	}
	if answer == Allow {
		return
	}
	if !slices.ContainsFunc(o.Verdicts, func(v Verdict) bool { return !v.Image.Unchanged }) {
		o.Reasons, o.against = append(o.Reasons, against...), answer
	}
	for i := range o.Verdicts {
		v := &o.Verdicts[i]
		if v.Image.Unchanged || held == Allow && v.allowUnasked(unasked) {
			continue
		}
		if v.Result == Allow {
			v.Pin, v.Reasons = false, nil
		}
		if answer == Deny { // the author's own words about the object come first
			v.Reasons = slices.Concat(against, v.Reasons)
		} else {
			v.Reasons = slices.Concat(v.Reasons, against)
		}
		v.Result = First(v.Result, answer)
	}
}

// doubtSilence withdraws the result that no policy matches an image, where an admitted
// failed rule may match it.
func (o *Outcome) doubtSilence() {
	for i := range o.Verdicts {
		v := &o.Verdicts[i]
		at := slices.IndexFunc(v.Reasons, func(r policy.Reason) bool { return r.Code == policy.NotConcerned })
		if at >= 0 {
			v.Reasons = slices.Clone(v.Reasons) // the slice may be shared with other outcomes
			v.Reasons[at].Message = "no policy that could be evaluated matches this image; the warnings name the others"
		}
	}
}

// againstObject returns a rule's objections to the object, and the resulting answer;
// admitted ones become warnings.
func (o *Outcome) againstObject(rule *policy.RuleResult) ([]policy.Reason, Result) {
	if rule.Err != nil {
		reason := deadline.Reason(rule.Err, rule.Policy.ID()+"/"+rule.Rule)
		silent := deadline.IsUnresponsive(rule.Err) && admitsSilence([]policy.Reason{reason})
		if rule.Policy.AuditOnly || rule.Policy.FailOpen && (rule.Policy.Broken != nil || silent) {
			o.Warnings = append(o.Warnings, reason)
			return nil, Allow
		}
		return []policy.Reason{reason}, Error
	}
	ruling := rule.Ruling
	if ruling.Passes() {
		return nil, Allow
	}
	looked := ruling.Result == policy.Fail
	if rule.Action.Admits() || !looked && rule.Policy.FailOpen && (rule.Policy.Broken != nil || admitsSilence(ruling.Reasons)) {
		o.Warnings = append(o.Warnings, ruling.Reasons...)
		return nil, Allow
	}
	if looked {
		return ruling.Reasons, Deny
	}
	return ruling.Reasons, Error
}

// settleOutcome sums up: the first of deny, error and allow for the object or one of its images.
func settleOutcome(o *Outcome) {
	o.Result = First(Allow, o.against)
	for _, reason := range o.Reasons {
		if reason.Code == policy.Malformed {
			o.Result = First(o.Result, Deny)
		} else {
			o.Result = First(o.Result, Error)
		}
	}
	for i := range o.Verdicts {
		o.Result = First(o.Result, o.Verdicts[i].Result)
	}
}

// markUnchecked replaces Allow where no policy matches. It is the last step: those before it
// treat such an image as an allowed one.
func (o *Outcome) markUnchecked() {
	checked := o.Matched() || slices.ContainsFunc(o.Rules, func(r policy.RuleResult) bool { return r.Unchanged && r.Kind == policy.ImageRule })
	for i := range o.Verdicts {
		v := &o.Verdicts[i]
		if v.Result == Allow && !v.Matched() && v.Override == nil && !v.Image.Unchanged {
			v.Result = Unchecked
		}
		checked = checked || v.Result != Unchecked
	}
	if o.Result == Allow && !checked {
		o.Result = Unchecked
	}
}

// isOverridable reports whether images that an Allow matches are allowed although a rule
// could not be evaluated. An image reference that cannot be parsed is not.
func isOverridable(rule *policy.RuleResult) bool {
	_, is := errors.AsType[extract.Unreadable](rule.Err)
	return !is
}

// allowUnasked allows an image that an Allow matches, although rules could not be
// evaluated for the object.
func (v *Verdict) allowUnasked(unasked []policy.Reason) bool {
	if v.Result != Allow || v.allowance == nil {
		return false
	}
	if v.Override == nil {
		v.Reasons = append([]policy.Reason{v.allowance.Reason()}, v.Reasons...)
	}
	v.use(v.allowance, unasked)
	return true
}

// use records that an Allow was used, and the reasons it outweighs.
func (v *Verdict) use(said *policy.Overruling, against []policy.Reason) {
	v.Override = said.Override
	v.Warnings = append(v.Warnings, against...)
}
