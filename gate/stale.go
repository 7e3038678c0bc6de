package gate

import (
	"errors"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// pinsLast withdraws a pass by a tag's stale digest where the tag is not replaced: the
// runtime resolves the tag at the registry itself, and may get another digest. The pods of
// a template are evaluated when they are created.
func (p pins) pinsLast(check *policy.Check, t checkEvaluation, decision policy.Decision) policy.Decision {
	if decision.Result != policy.Pass || t.image == nil || !t.image.result.IsStale || !check.NeedsProof() {
		return decision
	}
	written := asWritten(check.Image)
	pinning := p.pinningOf(check)
	if pinning == PinHere && !written.Ambiguous && !p.isTransformed(written) || pinning == PinLater && !p.bare {
		return decision
	}
	reason := policy.LookReason(&image.Error{Kind: image.Unavailable, Op: "resolve", On: written.Ref.String(), Err: errLast}, check.Entry)
	reason.Hint = "name the image by digest, or try again when the registry answers"
	return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{reason}}
}

var errLast = errors.New("the registry does not answer, and the tag cannot be pinned here to the digest that it was last proved by")

// pinLast pins a tag to the digest last verified for it, independent of the policies'
// pinning.
func (p pins) pinLast(v *Verdict) {
	if v.Result != Allow || v.Pin || !p.canPin(v) {
		return
	}
	v.Pin = true
	v.Reasons = append(v.Reasons, policy.Reason{
		Code: policy.DigestPinned, Message: "pinned, since the registry does not answer and may have moved the tag since it was proved",
	})
}

// staleReason is the reason that reports use of a stale entry.
func staleReason(age time.Duration) policy.Reason {
	return policy.Reason{
		Code:    policy.Stale,
		Message: "the registry does not answer; what was proved " + max(0, age).Round(time.Second).String() + " ago is used",
	}
}
