package gate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/workload"
)

var errUnfinished = errors.New("the time for the request passed before it was looked at")

// wantsPinned reports whether a check finds a tag where the digest that its policy
// pins and wants verified should stand by now. What a transformation made of the
// text cannot be pinned, and is proved again instead.
func (p *planned) wantsPinned(check *policy.Check) bool {
	return (p.request.Pinning == PinDone || p.request.Pinning == PinNever) && check.Skip == "" && check.MutateDigest && check.VerifyDigest &&
		check.Image.Ref.Digest().IsZero() && !p.isTransformed(asWritten(check.Image))
}

// slipped reports whether a check fails by that without any proof. A policy that
// admits failures is asked all the same, for its reports to be about signatures,
// and so is one that admits what could not be looked at: nobody could look, and so
// pin, a moment ago either.
func (p *planned) slipped(check *policy.Check) bool {
	return p.request.Pinning == PinDone && p.wantsPinned(check) && !check.Action.Admits() && (check.Policy == nil || !check.Policy.FailOpen)
}

// missing is the decision on an image that was to be pinned and is not.
func missing(check *policy.Check) policy.Decision {
	return policy.Decision{Check: check, Result: policy.Fail, Reasons: []policy.Reason{{
		Code: policy.MissingDigest, Path: check.Entry,
		Message: "missing digest for " + check.Image.Ref.Written() + ": the mutating webhook did not run, or another one changed the image afterwards",
		Hint:    "check that the mutating webhook configuration is there and matches the object, or name the image by digest",
	}}}
}

// isTransformed reports whether the image's reference was made from another text.
func (p *planned) isTransformed(found policy.Image) bool {
	use, ok := p.useOf(found)
	return ok && use.Text != use.Image
}

// useOf returns the use that an image was read from.
func (p *planned) useOf(found policy.Image) (workload.Use, bool) {
	i := slices.IndexFunc(p.uses, func(u workload.Use) bool { return u.Pointer == found.Pointer && u.Image == found.Ref.Written() })
	if i < 0 {
		return workload.Use{}, false
	}
	return p.uses[i], true
}

// pin fills in the patch of an object that is allowed as a whole.
func (p *planned) pin(out *Outcome) {
	if p.request.Pinning != PinHere || out.Answer != Allow {
		return
	}
	for i := range out.Verdicts {
		v := &out.Verdicts[i]
		text := v.text()
		if text == "" {
			continue
		}
		use, ok := p.useOf(v.Image)
		err := fmt.Errorf("nobody knows what stands at %s", v.Image.Pointer)
		if ok {
			var operations []workload.Operation
			if operations, err = workload.Pin(use, text); err == nil {
				out.Patch = append(out.Patch, operations...)
				continue
			}
		}
		v.Warnings = append(v.Warnings, policy.Reason{
			Code: policy.NotPinned, Path: v.Image.Pointer, Message: err.Error(), Hint: "name the image by digest",
		})
	}
}

// text is what should stand in the object instead of what was written; "" keeps
// that.
func (v *Verdict) text() string {
	switch {
	case v.Redirect != nil && !v.Redirect.Target.IsZero():
		return v.Redirect.Target.String()
	case v.Pin && !v.Pinned.IsZero() && v.Image.Ref.Digest().IsZero():
		return v.Pinned.Written()
	}
	return ""
}

// unpinned is the decision on a proved image that nobody can pin.
func unpinned(check *policy.Check, pinned image.Pinned) policy.Decision {
	return policy.Decision{Check: check, Result: policy.Fail, Reasons: []policy.Reason{{
		Code: policy.MissingDigest, Path: check.Entry,
		Message: "missing digest for " + check.Image.Ref.Written() + ": the policy wants it pinned, and nobody can change the object here",
		Hint:    "write " + pinned.Written(),
	}}}
}

// notPinned adds to an image that was proved by its tag that the runtime resolves
// the tag for itself, unless the tag is pinned.
func (p *planned) notPinned(v *Verdict) {
	if v.Answer != Allow || v.Pinned.IsZero() || !v.Image.Ref.Digest().IsZero() || v.Redirect != nil && !v.Redirect.Target.IsZero() {
		return
	}
	pins := v.Pin && p.request.Pinning != PinDone && p.request.Pinning != PinNever && !p.isTransformed(v.Image)
	proves := slices.ContainsFunc(v.Decisions, func(d policy.Decision) bool {
		return d.Result == policy.Pass && d.Check.NeedsProof()
	})
	if !pins && proves {
		v.Reasons = append(v.Reasons, policy.Reason{
			Code: policy.NotPinned, Message: "the tag is not pinned, and the runtime may see another digest than the proved one",
			Hint: "name the image by digest, or let the policy pin it (mutateDigest)",
		})
	}
}

// disagree takes back an allowance that was given for two digests at once.
func (v *Verdict) disagree(check *policy.Check) {
	v.Answer, v.Pin = Unable, false
	v.Reasons = []policy.Reason{{
		Code: policy.Contradiction, Path: check.Entry,
		Message: "the tag stands for different digests, by the credentials it is asked with",
		Hint:    "try again; if it stays so, name the image by digest",
	}}
}
