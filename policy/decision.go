package policy

import (
	"slices"

	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/verify"
)

// Result is the outcome of a check. Undecided means that the check could not be evaluated: only
// the gate turns it into an admission or a denial.
type Result string

// The results.
const (
	Pass          Result = "pass"
	Fail          Result = "fail"
	Indeterminate Result = "indeterminate"
	Skipped       Result = "skip"
)

// Decision is the result of one check.
type Decision struct {
	Check  *Check
	Result Result
	// Reasons, the most telling first; never empty.
	Reasons []Reason
	// Facts are the claims that met the requirements.
	Facts []verify.Fact
	// BuildLevel is the SLSA build level that the claims show; 0 where it was not verified.
	BuildLevel int
	// IsOpen: everyone can have made such claims, so that they are no verification for another policy.
	IsOpen bool
}

// Lacking returns the decision with the reason why a required digest is missing, which denies
// whatever the other results are. A requirement that the image itself fails is graver and stays
// first; errors follow.
func (d Decision) Lacking(digest Reason) Decision {
	switch {
	case d.Result == Skipped:
		return d
	case d.Result == Fail:
		d.Reasons = slices.Concat(d.Reasons, []Reason{digest})
	case d.Result == Pass:
		d.Reasons = []Reason{digest}
	case d.Check.Unsure != nil: // nor is it certain that the policy requires a digest
		d.Reasons = slices.Concat(d.Reasons, []Reason{digest})
		return d
	default:
		d.Reasons = slices.Concat([]Reason{digest}, d.Reasons)
	}
	d.Result, d.Facts = Fail, nil
	return d.WithUncertainty()
}

// WithDigest withdraws a pass of an image that is referenced by tag if the policy requires a
// digest and does not pin, and adds that reason to a failure.
func (d Decision) WithDigest() Decision {
	c := d.Check
	if c.MutateDigest || !c.VerifyDigest || !c.Image.Ref.Digest().IsZero() {
		return d
	}
	return d.Lacking(Reason{
		Code: MissingDigest, Path: c.Entry,
		Message: "missing digest for " + c.Image.Ref.Written(),
		Hint:    hint.Of(MissingDigest),
	})
}

// Decided returns the decision of a check that needs no answers because it is skipped.
func Decided(check *Check) (Decision, bool) {
	switch {
	case check.Exception != nil:
		return Decision{Check: check, Result: Skipped, Reasons: []Reason{{Code: Excepted, Path: check.Entry, Message: check.Skip}}}, true
	case check.Skip != "":
		return Decision{Check: check, Result: Skipped, Reasons: []Reason{{Code: SkippedByPolicy, Path: check.Entry, Message: check.Skip}}}, true
	}
	return Decision{}, false
}

// AtTag returns the decision about a digest to which the tag beside it resolves: an exempt tag skips it.
func AtTag(own Decision) Decision {
	if own.Check.AtTag == nil || own.Result == Pass {
		return own
	}
	check := *own.Check
	check.Skip, check.Exception = check.AtTag.Skip, check.AtTag.Exception
	skipped, _ := Decided(&check)
	return skipped
}

// WithUncertainty makes a failure indeterminate where the rule may not apply.
func (d Decision) WithUncertainty() Decision {
	if d.Check.Unsure == nil || d.Result != Fail {
		return d
	}
	d.Result = Indeterminate
	d.Reasons = append([]Reason{{Code: PolicyError, Path: d.Check.Entry, Message: d.Check.Unsure.Error()}}, d.Reasons...)
	return d
}
