package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
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
	return d.unsure()
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
		Hint:    "name the image by digest, or let the policy pin it (mutateDigest)",
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

// Decide judges a check by the answers to its questions. A check that is skipped or requires no
// verification needs no answers. One with a Judge is undecided until its judge is evaluated.
// Decision.WithDigest handles a missing digest.
func Decide(check *Check, answers Answers) Decision { return decide(check, answers).unsure() }

// unsure makes a failure indeterminate where the rule may not apply.
func (d Decision) unsure() Decision {
	if d.Check.Unsure == nil || d.Result != Fail {
		return d
	}
	d.Result = Indeterminate
	d.Reasons = append([]Reason{{Code: PolicyError, Path: d.Check.Entry, Message: d.Check.Unsure.Error()}}, d.Reasons...)
	return d
}

func decide(check *Check, answers Answers) Decision {
	if decision, ok := Decided(check); ok {
		return decision
	}
	if check.Judge != nil {
		return Decision{Check: check, Result: Indeterminate, Reasons: []Reason{{
			Code: Internal, Path: check.Entry, Message: "the policy's expressions were not asked, which is a defect",
		}}}
	}
	if !check.NeedsProof() && check.Deny != nil { // the judge's own message precedes missing verifications
		if judged := attestations(check, answers); judged.result != Pass {
			return Decision{Check: check, Result: judged.result, Reasons: judged.reasons}
		}
	}
	if !check.NeedsProof() && check.Required {
		return Decision{Check: check, Result: Fail, Reasons: []Reason{{
			Code: PolicyError, Path: check.Entry, Message: "the policy requires a proof and names nobody who could give one",
			Hint: "name attestors, or say required: false if only the digest matters",
		}}}
	}
	if !check.NeedsProof() {
		return Decision{Check: check, Result: Pass, Reasons: []Reason{{Code: DigestPinned, Path: check.Entry, Message: "nothing to prove"}}}
	}
	judged := judgement{result: Pass}
	for i := range check.Requirements {
		judged.and(requirement(&check.Requirements[i], signatureOf(check), answers))
	}
	judged.and(attestations(check, answers))
	if judged.result == Pass {
		judged.reasons = []Reason{{Code: Verified, Path: check.Entry, Message: signers(judged.facts)}}
	} else {
		judged.facts = nil // the reasons hold the verified part
	}
	return Decision{Check: check, Result: judged.result, Reasons: judged.reasons, Facts: judged.facts}
}

// signers lists the signers of the facts, each once, in order.
func signers(facts []verify.Fact) string {
	var names []string
	for _, f := range facts {
		if name := f.Signer.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "signed by " + strings.Join(names, " and ")
}

// judgement is a three-valued result that grows: a failure stays one, and
// undecided becomes one only by another part's failure.
type judgement struct {
	result  Result
	reasons []Reason
	facts   []verify.Fact
}

// and joins another part that must hold as well.
func (j *judgement) and(other judgement) {
	if other.result == Pass {
		j.facts = append(j.facts, other.facts...)
		return
	}
	if other.result == Fail && j.result == Indeterminate {
		j.reasons = append(other.reasons, j.reasons...) // the certain one first
	} else {
		j.reasons = append(j.reasons, other.reasons...)
	}
	if other.result == Fail || j.result == Pass {
		j.result = other.result
	}
}

// requirement judges a set: at least Threshold members must match, each by a different signer.
func requirement(r *Requirement, about Question, answers Answers) judgement {
	tally := &tally{}
	var missed []Decision
	possible := 0 // members that a closed gap might still add
	for _, m := range r.Members {
		var one judgement
		if m.Set != nil {
			one = requirement(m.Set, about, answers)
			if one.result == Pass {
				tally.add(one.facts, true)
			}
		} else {
			one = member(m, about, answers)
			if one.result == Pass {
				tally.add(one.facts, false)
			}
		}
		if one.result != Pass {
			missed = append(missed, Decision{Result: one.result, Reasons: one.reasons})
			if one.result == Indeterminate {
				possible++
			}
		}
	}
	met := tally.count()
	if met >= r.Threshold {
		return judgement{result: Pass, facts: tally.facts()}
	}
	return shortfall(r, tally, missed, met+possible >= r.Threshold)
}

// shortfall puts an unmet requirement into words.
func shortfall(r *Requirement, t *tally, missed []Decision, open bool) judgement {
	out := judgement{result: Fail}
	if open {
		out.result = Indeterminate
	}
	if len(t.members) > 0 {
		out.reasons = append(out.reasons, Reason{
			Code: TooFewSigners, Path: r.Name,
			Message:  "too few different signers",
			Expected: fmt.Sprintf("%d of %d", r.Threshold, len(r.Members)),
			Found:    fmt.Sprintf("%d: %s", t.count(), signers(t.facts())),
		})
	}
	out.reasons = append(out.reasons, Shortcomings(out.result, missed)...)
	return out
}

// member judges one authority.
func member(m Member, about Question, answers Answers) judgement {
	question := about.by(m)
	answer := answers(question)
	if len(answer.Facts) > 0 {
		return judgement{result: Pass, facts: answer.Facts}
	}
	var reasons []Reason
	result := Fail
	if answer.disagreed {
		// The missing statements are reported once, separately.
	} else if miss := nearest(answer.Rejections); miss != nil {
		reasons = append(reasons, Reason{
			Code: Code(miss.Code), Path: m.Authority.Name, Message: message(miss),
			Expected: miss.Expected, Found: miss.Found, Where: miss.Origin.String(),
		})
	} else if len(answer.Gaps) == 0 {
		reasons = append(reasons, nothing(m, question, answer))
	}
	if len(answer.Gaps) > 0 { // gaps precede rejections of the evidence that was seen
		result = Indeterminate
		gaps := make([]Reason, len(answer.Gaps), len(answer.Gaps)+len(reasons))
		for i, gap := range answer.Gaps {
			gaps[i] = LookReason(gap, m.Authority.Name)
		}
		reasons = append(gaps, reasons...)
	}
	return judgement{result: result, reasons: reasons}
}

// message returns the text for a rejection's code.
func message(miss *verify.Rejection) string {
	text, ok := sentences[miss.Code]
	if !ok {
		text = string(miss.Code)
	}
	if miss.Err != nil && miss.Code != verify.WrongKey { // details of a failed signature check do not help the user
		text += ": " + miss.Err.Error()
	}
	return text
}

// nothing reports that evidence of the required kind is missing, and which other evidence exists.
func nothing(m Member, question Question, answer Answer) Reason {
	reason := Reason{Code: Unsigned, Path: m.Authority.Name, Message: "no signature found"}
	if question.Role == attest.Attestation {
		reason.Code = NoAttestation
		reason.Message = "no attestation of type " + question.Predicate + " found"
	}
	if len(answer.Instead) > 0 {
		reason.Found = strings.Join(answer.Instead, ", ")
		reason.Expected = "a signature"
		if question.Role == attest.Attestation {
			reason.Expected = "an attestation of type " + question.Predicate
		}
	}
	return reason
}
