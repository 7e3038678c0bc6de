package decide

import (
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// Platforms are the children of an index, with the answers about each.
type Platforms struct {
	// Children are none for a manifest.
	Children []image.Descriptor
	// Err is why the index could not be read.
	Err error
	// Answers returns the answers about a child.
	Answers func(child image.Digest) policy.Answers
}

// Each requires every child to be verified; a manifest that is no index counts as its own
// only child, by the decision own.
func (p Platforms) Each(own policy.Decision) policy.Decision {
	check := own.Check
	if p.Err != nil {
		return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(p.Err, check.Entry)}}
	}
	if len(p.Children) == 0 {
		return own
	}
	joined := policy.Decision{Check: check, Result: policy.Pass}
	var met, missed []policy.Reason
	for _, child := range p.Children {
		one := p.onChild(check, child)
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

// Any requires the index, by the decision own, or one child to be verified. The reasons why a child
// could not be verified come first: whether a failure setting admits the image depends on them.
func (p Platforms) Any(own policy.Decision) policy.Decision {
	if own.Result == policy.Pass {
		return own
	}
	if p.Err != nil {
		own.Result = policy.Indeterminate
		own.Reasons = append(own.Reasons, policy.LookReason(p.Err, own.Check.Entry))
		return own
	}
	var open []policy.Reason
	for _, child := range p.Children {
		one := p.onChild(own.Check, child)
		if one.Result == policy.Pass {
			return one
		}
		if one.Result == policy.Indeterminate {
			own.Result, open = policy.Indeterminate, append(open, one.Reasons...)
		}
	}
	own.Reasons = slices.Concat(open, own.Reasons)
	return own
}

// BesideIndex completes the decision own about a digest by the unknown parts of the index that
// lists it: the decision index about that, or err where it could not be read. The index may be
// verified in place of the digest, which is then not unsigned. No failure setting admits that: the
// author of a workload chooses the tag.
func BesideIndex(own, index policy.Decision, err error) policy.Decision {
	if own.Result != policy.Fail || Contradicted(own) {
		return own
	}
	var unread []policy.Reason
	switch kind := image.KindOf(err); {
	case kind == image.Unavailable || kind == image.Refused:
		unread = []policy.Reason{policy.LookReason(err, own.Check.Entry)}
	case index.Result == policy.Indeterminate && index.Check != nil:
		unread = slices.Clone(index.Reasons)
	default:
		return own
	}
	for i := range unread {
		if code := unread[i].Code; code == policy.Unavailable || code == policy.TimedOut {
			unread[i].Code = policy.CannotProve
		}
	}
	own.Result, own.Reasons = policy.Indeterminate, slices.Concat(unread, own.Reasons)
	return own
}

// OfIndex adds to reasons for missing evidence about an image that it is an index: its platforms may be
// signed. Nothing is requested for that: the index and the evidence of one platform take three requests.
func OfIndex(decision policy.Decision, about image.Descriptor) policy.Decision {
	if decision.Result != policy.Fail || decision.Check.Platforms != policy.PlatformIndex || !about.IsIndex() {
		return decision
	}
	decision.Reasons = slices.Clone(decision.Reasons)
	for i := range decision.Reasons {
		if reason := &decision.Reasons[i]; reason.Code == policy.Unsigned || reason.Code == policy.NoAttestation {
			reason.Message += "; the image is an index, for which signatures of its platforms alone do not count"
		}
	}
	return decision
}

// onChild decides about one child of an index. An index inside may list any platform.
func (p Platforms) onChild(check *policy.Check, child image.Descriptor) policy.Decision {
	if child.IsIndex() {
		err := fmt.Errorf("it lists the index %s, whose platforms are not looked at", child.Digest.String())
		return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{policy.LookReason(err, check.Entry)}}
	}
	one := Check(check, p.Answers(child.Digest))
	name := child.Digest.String()
	if child.Platform != nil {
		name = child.Platform.String()
	}
	for i := range one.Reasons {
		one.Reasons[i].Message = "platform " + name + ": " + one.Reasons[i].Message
	}
	return one
}
