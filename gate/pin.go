package gate

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/gate/internal/fixedfield"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/workload"
)

// pins are the images of one object, as far as their references are replaced in it.
type pins struct {
	own  Pinning // of the request
	bare bool    // there is no object
	uses []workload.Use
	// subject is the object, for the fields that its update may not change.
	subject *policy.Subject
}

// isFixed reports whether the API server refuses a change of the image's field in this update.
func (p pins) isFixed(found policy.Image) bool { return fixedfield.Is(p.subject, found.Pointer) }

// pinningOf returns how the image of a check is pinned. In a template, only images of
// rules that name the template's kind itself are pinned.
func (p pins) pinningOf(check *policy.Check) Pinning {
	switch {
	case p.own == PinNamed && check.Named:
		return PinHere
	case p.own == PinLater && check.Named:
		return PinDone
	case p.own == PinKept && check.Named:
		return PinNever
	}
	return p.pinning()
}

// pinning is how images are pinned that no rule matches which names the object's kind
// itself.
func (p pins) pinning() Pinning {
	if p.own == PinNamed || p.own == PinKept {
		return PinLater
	}
	return p.own
}

// withDigest withdraws a pass where the reference stays a tag and the policy requires a
// digest, and adds that reason to a failure.
func (p pins) withDigest(decision policy.Decision, evaluation checkEvaluation) policy.Decision {
	decision = decision.WithDigest()
	reason, lacks := p.lacksDigest(decision.Check, evaluation)
	if !lacks {
		return decision
	}
	if decision.Result == policy.Indeterminate {
		switch {
		case decision.Check.Policy.FailOpen && mayFailOpen(decision):
			return decision // where it could not be verified a moment ago, it could not be pinned either
		case p.pinningOf(decision.Check) == PinNever && !evaluation.isResolved():
			return decision // there is no digest to write: that is the cause to report
		}
	}
	return decision.Lacking(reason)
}

// lacksDigest returns why a reference stays a tag where the policy pins and verifies
// digests; false where it is pinned here or later.
func (p pins) lacksDigest(check *policy.Check, evaluation checkEvaluation) (policy.Reason, bool) {
	if check.Skip != "" || !check.MutateDigest || !check.VerifyDigest || !check.Image.Ref.Digest().IsZero() {
		return policy.Reason{}, false
	}
	reason := policy.Reason{Code: policy.MissingDigest, Path: check.Entry, Message: "missing digest for " + check.Image.Ref.Written()}
	pinning := p.pinningOf(check)
	switch {
	case pinning == PinLater:
		return policy.Reason{}, false
	case check.Image.Ambiguous:
		reason.Message += ": which place of the object holds the image is not known"
		reason.Hint = hint.NameDigest
	case p.isFixed(check.Image):
		reason.Message += ": the policy pins images, and an update cannot change this field"
		reason.Hint = hint.CreateWithDigest
	case p.isTransformed(asWritten(check.Image)):
		reason.Message += ": the policy makes the reference from another text, which cannot be replaced"
		reason.Hint = hint.NoVerifyDigest
	case pinning == PinNever:
		reason.Message += ": the policy pins images, and the object cannot be changed here"
		reason.Hint = hint.NameDigest
		if evaluation.isResolved() {
			reason.Hint = hint.Write(evaluation.image.result.Pinned.Written())
		}
	case pinning == PinDone:
		reason.Message += ": the mutating webhook did not run, or another one changed the image afterwards"
		reason.Hint = hint.PinByWebhook
	default:
		return policy.Reason{}, false
	}
	return reason, true
}

// isResolved reports whether the digest that a reference resolves to is known.
func (e checkEvaluation) isResolved() bool {
	return e.image != nil && e.image.result != nil && !e.image.result.Pinned.IsZero()
}

// canPin reports whether the tag is replaced by the known digest.
func (p pins) canPin(v *Verdict) bool {
	here := p.pinning() == PinHere || p.own == PinNamed && v.wantsNamed()
	return here && !v.Image.Ambiguous && v.Image.Ref.Digest().IsZero() && !v.Pinned.IsZero() && !p.isTransformed(v.Image) && !p.isFixed(v.Image)
}

// isTransformed reports whether the image's reference was made from another text.
func (p pins) isTransformed(found policy.Image) bool {
	use, ok := p.useOf(found)
	return ok && use.Text != use.Image
}

// useOf returns the use that an image was read from.
func (p pins) useOf(found policy.Image) (workload.Use, bool) {
	i := slices.IndexFunc(p.uses, func(u workload.Use) bool { return u.Pointer == found.Pointer && u.Image == found.Ref.Written() })
	if i < 0 {
		return workload.Use{}, false
	}
	return p.uses[i], true
}

// pin fills in the patch of an object that is allowed as a whole.
func (p pins) pin(out *Outcome) {
	if p.own != PinHere && p.own != PinNamed || out.Result != Allow {
		return
	}
	for i := range out.Verdicts {
		v := &out.Verdicts[i]
		text := v.text(p.own == PinHere)
		if text == "" || !p.pinsHere(v) || p.isFixed(v.Image) {
			continue
		}
		use, ok := p.useOf(v.Image)
		err := fmt.Errorf("which text of the object is the image at %s is not known", v.Image.Pointer)
		if ok && !v.Image.Ambiguous {
			var operations []workload.Operation
			operations, err = workload.Pin(use, text)
			if err == nil {
				out.Patch = append(out.Patch, operations...)
				continue
			}
		}
		v.Warnings = append(v.Warnings, policy.Reason{
			Code: policy.NotPinned, Path: v.Image.Pointer, Message: err.Error(), Hint: hint.NameDigest,
		})
	}
}

// pinsHere reports whether the reference of an image is replaced in the object.
func (p pins) pinsHere(v *Verdict) bool {
	return p.own == PinHere || p.own == PinNamed && v.wantsNamed()
}

// wantsNamed reports whether a rule that names the object's kind itself requires the image
// to be pinned.
func (v *Verdict) wantsNamed() bool {
	return slices.ContainsFunc(v.Decisions, func(d policy.Decision) bool {
		return d.Check.Named && d.Check.MutateDigest && d.Check.Skip == ""
	})
}

// text is the replacement for the reference in the object; "" keeps the reference.
// Templates are not redirected.
func (v *Verdict) text(redirects bool) string {
	switch {
	case redirects && v.Redirect != nil && !v.Redirect.Target.IsZero():
		return v.Redirect.Target.String()
	case v.Pin && !v.Pinned.IsZero() && v.Image.Ref.Digest().IsZero():
		return v.Pinned.Written()
	}
	return ""
}

// notPinned adds a warning to an image that was verified by its tag: the runtime resolves
// the tag itself, unless the tag is pinned.
func (p pins) notPinned(v *Verdict) {
	if v.Result != Allow || v.Pinned.IsZero() || !v.Image.Ref.Digest().IsZero() || v.Redirect != nil && !v.Redirect.Target.IsZero() {
		return
	}
	pins := v.Pin && !v.Image.Ambiguous && !p.isTransformed(v.Image) && !p.leavesTag(v)
	proves := slices.ContainsFunc(v.Decisions, func(d policy.Decision) bool {
		return d.Result == policy.Pass && d.Check.NeedsProof()
	})
	if !pins && proves {
		v.Reasons = append(v.Reasons, policy.Reason{
			Code: policy.NotPinned, Message: "the tag is not pinned, and the runtime may see another digest than the proved one",
			Hint: hint.Of(policy.NotPinned),
		})
	}
}

// leavesTag reports whether an image that its checks require pinned is pinned neither here
// nor later.
func (p pins) leavesTag(v *Verdict) bool {
	leaves := func(pinning Pinning) bool { return pinning == PinDone || pinning == PinNever }
	return leaves(p.pinning()) || slices.ContainsFunc(v.Decisions, func(d policy.Decision) bool {
		return d.Result == policy.Pass && d.Check.MutateDigest && leaves(p.pinningOf(d.Check))
	})
}

// disagree takes back an allowance that was given for two digests at once.
func (v *Verdict) disagree(check *policy.Check) {
	v.Result, v.Pin = Error, false
	v.Reasons = []policy.Reason{{
		Code: policy.Contradiction, Path: check.Entry,
		Message: "the tag resolves to different digests with different credentials",
		Hint:    hint.DigestIfPersists,
	}}
}

// pins returns the references of the object's images.
func (p *objectEvaluation) pins() pins {
	return pins{own: p.request.Pinning, bare: p.subject.Bare, uses: p.images.uses, subject: p.subject}
}

// withdrawStale withdraws a pass by a tag's stale digest where the tag is not replaced: the
// runtime resolves the tag at the registry itself, and may get another digest. The pods of
// a template are evaluated when they are created.
func (p pins) withdrawStale(check *policy.Check, evaluation checkEvaluation, decision policy.Decision) policy.Decision {
	if decision.Result != policy.Pass || evaluation.image == nil || !evaluation.image.result.IsStale || !check.NeedsProof() {
		return decision
	}
	written := asWritten(check.Image)
	pinning := p.pinningOf(check)
	if pinning == PinHere && !written.Ambiguous && !p.isTransformed(written) || pinning == PinLater && !p.bare {
		return decision
	}
	reason := policy.LookReason(&image.Error{Kind: image.Unavailable, Op: "resolve", On: written.Ref.String(), Err: errStaleUnpinned}, check.Entry)
	reason.Hint = hint.DigestOrRetry
	return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{reason}}
}

var errStaleUnpinned = errors.New("the registry does not answer, and the tag cannot be pinned here to the digest that it was last proved by")

// pinStale pins a tag to the digest last verified for it, independent of the policies'
// pinning.
func (p pins) pinStale(v *Verdict) {
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
