package evaluate

import (
	"slices"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
)

// onIndex adds to a decision about an index that it lists the named digest.
func onIndex(decision policy.Decision, listing image.Pinned) policy.Decision {
	decision.Reasons = append(slices.Clip(decision.Reasons), policy.Reason{
		Code: policy.Verified, Path: decision.Check.Entry,
		Message: "the proved index " + listing.Digest().Short() + " lists this platform",
	})
	return decision
}

// eachPlatform requires every child to be verified; a manifest that is no index counts as its own
// only child, by the decision own.
func eachPlatform(own policy.Decision, listed index, answers *answers) policy.Decision {
	check := own.Check
	if listed.err != nil {
		return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(listed.err, check.Entry)}}
	}
	if len(listed.children) == 0 {
		return own
	}
	joined := policy.Decision{Check: check, Result: policy.Pass}
	var met, missed []policy.Reason
	for _, child := range listed.children {
		one := onChild(check, child, answers)
		if one.Result == policy.Pass {
			joined.Facts = append(joined.Facts, one.Facts...)
			met = append(met, one.Reasons...)
			continue
		}
		missed = append(missed, one.Reasons...)
		if joined.Result != policy.Fail { // a definite failure outweighs an error
			joined.Result = one.Result
		}
	}
	joined.Reasons = met
	if joined.Result != policy.Pass {
		joined.Facts, joined.Reasons = nil, missed
	}
	return joined
}

// anyPlatform requires the index, by the decision own, or one child to be verified.
func anyPlatform(own policy.Decision, listed index, answers *answers) policy.Decision {
	if own.Result == policy.Pass {
		return own
	}
	if listed.err != nil {
		own.Result = policy.Indeterminate
		own.Reasons = append(own.Reasons, policy.LookReason(listed.err, own.Check.Entry))
		return own
	}
	for _, child := range listed.children {
		one := onChild(own.Check, child, answers)
		if one.Result == policy.Pass {
			return one
		}
		if one.Result == policy.Indeterminate {
			own.Result = policy.Indeterminate
		}
	}
	return own
}

// onChild decides about one child of an index.
func onChild(check *policy.Check, child image.Descriptor, answers *answers) policy.Decision {
	one := decide.Check(check, answers.about(child.Digest))
	name := child.Digest.Short()
	if child.Platform != nil {
		name = child.Platform.String()
	}
	for i := range one.Reasons {
		one.Reasons[i].Message = "platform " + name + ": " + one.Reasons[i].Message
	}
	return one
}
