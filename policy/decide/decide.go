package decide

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/verify"
)

// Check decides a check by the answers to its questions. A check that is skipped or requires no
// verification needs no answers. One with a Judge is indeterminate until its judge is evaluated.
// Decision.WithDigest handles a missing digest.
func Check(check *policy.Check, answers policy.Answers) policy.Decision {
	by := func(answers policy.Answers) policy.Decision {
		return evaluate(check, func(q policy.Question) answer { return answer{Answer: answers(q)} }).WithUncertainty()
	}
	dated, isLess := check.Dated(answers)
	decision := by(dated)
	if decision.Result == policy.Pass && isLess() {
		if whole := by(answers); whole.Result != policy.Pass {
			return whole
		}
	}
	return decision
}

// answer is the answer to a question, less the statements that a condition does not hold for.
type answer struct {
	policy.Answer
	// disagreed: statements were verified, and the condition holds for none.
	disagreed bool
}

type answers func(policy.Question) answer

func evaluate(check *policy.Check, ask answers) policy.Decision {
	if decision, ok := policy.Decided(check); ok {
		return decision
	}
	if check.Judge != nil || check.Age.Whole {
		return policy.Decision{Check: check, Result: policy.Indeterminate, Reasons: []policy.Reason{{
			Code: policy.Internal, Path: check.Entry, Message: "the policy's expressions were not asked, which is a defect",
		}}}
	}
	if !check.NeedsProof() && check.Deny != nil { // the judge's own message precedes missing verifications
		if judged := attestations(check, ask); judged.result != policy.Pass {
			return policy.Decision{Check: check, Result: judged.result, Reasons: judged.reasons}
		}
	}
	if !check.NeedsProof() && check.Required {
		return policy.Decision{Check: check, Result: policy.Fail, Reasons: []policy.Reason{{
			Code: policy.PolicyError, Path: check.Entry, Message: "the policy requires a verification and has no attestors",
			Hint: hint.NameAttestors,
		}}}
	}
	if !check.NeedsProof() {
		return policy.Decision{Check: check, Result: policy.Pass,
			Reasons: []policy.Reason{{Code: policy.DigestPinned, Path: check.Entry, Message: "nothing to prove"}}}
	}
	judged := judgement{result: policy.Pass}
	for i := range check.Requirements {
		judged.and(requirement(&check.Requirements[i], check.SignatureQuestion(), ask))
	}
	judged.and(attestations(check, ask))
	if judged.result == policy.Pass {
		judged.reasons = []policy.Reason{{Code: policy.Verified, Path: check.Entry, Message: signers(judged.facts)}}
	} else {
		judged.facts = nil // the reasons hold the verified part
	}
	return policy.Decision{Check: check, Result: judged.result, Reasons: judged.reasons, Facts: judged.facts}
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
	result  policy.Result
	reasons []policy.Reason
	facts   []verify.Fact
	// signers are all facts that met members of a set, also those that were not counted.
	signers []verify.Fact
}

// and joins another part that must hold as well.
func (j *judgement) and(other judgement) {
	if other.result == policy.Pass {
		j.facts = append(j.facts, other.facts...)
		return
	}
	if other.result == policy.Fail && j.result == policy.Indeterminate {
		j.reasons = append(other.reasons, j.reasons...) // the certain one first
	} else {
		j.reasons = append(j.reasons, other.reasons...)
	}
	if other.result == policy.Fail || j.result == policy.Pass {
		j.result = other.result
	}
}

// requirement judges a set: at least Threshold members must match, each by a different signer.
func requirement(r *policy.Requirement, about policy.Question, ask answers) judgement {
	tally := &matching{}
	var missed []policy.Decision
	possible := 0 // members that a closed gap might still add
	for _, m := range r.Members {
		var one judgement
		if m.Set != nil {
			one = requirement(m.Set, about, ask)
			if one.result == policy.Pass {
				tally.add(met{facts: one.signers, set: one.facts})
			}
		} else {
			one = member(m, about, ask)
			if one.result == policy.Pass {
				tally.add(met{facts: one.facts})
			}
		}
		if one.result != policy.Pass {
			missed = append(missed, policy.Decision{Result: one.result, Reasons: one.reasons})
			if one.result == policy.Indeterminate {
				possible++
			}
		}
	}
	count := tally.count()
	if count >= r.Threshold {
		return judgement{result: policy.Pass, facts: tally.facts(), signers: tally.all()}
	}
	return shortfall(r, tally, missed, count+possible >= r.Threshold)
}

// shortfall puts an unmet requirement into words.
func shortfall(r *policy.Requirement, t *matching, missed []policy.Decision, open bool) judgement {
	out := judgement{result: policy.Fail}
	if open {
		out.result = policy.Indeterminate
	}
	if len(t.members) > 0 {
		out.reasons = append(out.reasons, policy.Reason{
			Code: policy.TooFewSigners, Path: r.Name,
			Message:  "too few different signers",
			Expected: fmt.Sprintf("%d of %d", r.Threshold, len(r.Members)),
			Found:    fmt.Sprintf("%d: %s", t.count(), signers(t.facts())),
		})
	}
	out.reasons = append(out.reasons, Shortcomings(out.result, missed)...)
	return out
}

// member judges one authority.
func member(m policy.Member, about policy.Question, ask answers) judgement {
	question := about.By(m)
	found := ask(question)
	if len(found.Facts) > 0 {
		return judgement{result: policy.Pass, facts: found.Facts}
	}
	var reasons []policy.Reason
	result := policy.Fail
	if found.disagreed {
		// The missing statements are reported once, separately.
	} else if miss := verify.Nearest(found.Rejections); miss != nil {
		reasons = append(reasons, policy.Reason{
			Code: policy.Code(miss.Code), Path: m.Authority.Name, Message: message(miss),
			Expected: miss.Expected, Found: miss.Found, Where: miss.Origin.String(),
		})
	} else if len(found.Gaps) == 0 {
		reasons = append(reasons, nothing(m, question, found.Answer))
	}
	if len(found.Gaps) > 0 { // gaps precede rejections of the evidence that was seen
		result = policy.Indeterminate
		gaps := make([]policy.Reason, len(found.Gaps), len(found.Gaps)+len(reasons))
		for i, gap := range found.Gaps {
			gaps[i] = policy.LookReason(gap, m.Authority.Name)
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
func nothing(m policy.Member, question policy.Question, answer policy.Answer) policy.Reason {
	reason := policy.Reason{Code: policy.Unsigned, Path: m.Authority.Name, Message: "no signature found"}
	if question.Role == attest.Attestation {
		reason.Code = policy.NoAttestation
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
