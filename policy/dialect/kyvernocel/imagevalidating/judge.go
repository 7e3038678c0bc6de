package imagevalidating

import (
	"context"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/decide"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/verify"
)

// judge is a policy.Judge: the expressions of a policy, about one object.
type judge struct {
	rule    *rule
	subject *policy.Subject
	members []member
	secrets []string
}

// member is an image of the object.
type member struct {
	image      policy.Image
	categories []string
	meant      bool
	people     []person // of an image that the policy matches
}

// Judge evaluates the validations in their order, on all images together. If they do not hold,
// each image is also judged alone: an image is denied for its own failures, and not for those of
// another one.
func (j *judge) Judge(ctx context.Context, given []policy.Given) policy.Judgement {
	if j.subject.Bare {
		return j.judgeBare(ctx, given)
	}
	return j.judgeMembers(ctx, given)
}

func (j *judge) judgeMembers(ctx context.Context, given []policy.Given) policy.Judgement {
	h := newImageEvaluation(j, given, "")
	out := policy.Judgement{Decisions: make([]policy.Decision, len(given))}
	everybody := make([]int, len(given))
	for i := range given {
		everybody[i] = i
	}
	if j.rule.program.aboutObject {
		out.Object = h.evaluate(ctx, everybody, selection{}, false).ruling()
	}
	joint := h.hear(ctx, everybody)
	if len(given) == 0 {
		out.Object = worse(out.Object, joint.ruling())
	}
	for i, found := range h.attribute(ctx, everybody, joint) {
		out.Decisions[i] = h.decision(i, found)
	}
	words, errs := h.rule.program.annotations.Words(ctx, joint.activation)
	out.AuditAnnotations = words
	if faults := slices.DeleteFunc(errs, hingesOnLeft); len(faults) > 0 {
		out.Object = worse(out.Object, policy.Ruling{Result: policy.Indeterminate, Reasons: kyvernocel.AnnotationReasons(faults)})
	}
	return out
}

func worse(a, b policy.Ruling) policy.Ruling {
	if severity(b.Result) > severity(a.Result) {
		a, b = b, a
	}
	a.Reasons = append(a.Reasons, b.Reasons...)
	return a
}

// severity orders results: definite failures come last.
func severity(r policy.Result) int {
	switch r {
	case policy.Fail:
		return 2
	case policy.Indeterminate:
		return 1
	}
	return 0
}

// attribute returns an outcome for each image, at least one of which is as bad as the joint
// outcome.
func (h *imageEvaluation) attribute(ctx context.Context, everybody []int, joint *outcome) []*outcome {
	each, worst := make([]*outcome, len(everybody)), 0
	for i := range everybody {
		each[i] = joint
		if joint.result != policy.Pass && len(everybody) > 1 {
			each[i] = h.hearAlone(ctx, i)
		}
		worst = max(worst, severity(each[i].result))
	}
	if worst < severity(joint.result) { // only all of them together fail
		for i := range each {
			each[i] = joint
		}
	}
	return each
}

// decision puts an outcome into words about one image.
func (h *imageEvaluation) decision(i int, found *outcome) policy.Decision {
	d := policy.Decision{Check: h.given[i].Check, Result: found.result}
	if found.result == policy.Pass {
		d.Facts, d.Reasons = found.met[i], []policy.Reason{h.rule.program.verified(found.met[i])}
		return d
	}
	d.Reasons = append(h.misses(i, found), found.reasons...)
	return d
}

func (p *program) verified(facts []verify.Fact) policy.Reason {
	if len(facts) == 0 {
		message := "the validations hold, and none of them is about a signature or an attestation of it"
		if len(p.asks) > 0 {
			message = "the validations hold, and no signature or attestation of it was needed for them to hold"
		}
		return policy.Reason{Code: policy.DigestPinned, Path: "spec.validations", Message: message}
	}
	var names []string
	for _, f := range facts {
		if name := f.Signer.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return policy.Reason{Code: policy.Verified, Path: "spec.validations", Message: "signed by " + strings.Join(names, " and ")}
}

// misses returns the failures of the attestors in the failing expression, the nearest miss of
// each, and the nearest of all first: it is unknown whether the expression requires one of them
// or all.
func (h *imageEvaluation) misses(i int, found *outcome) []policy.Reason {
	if found.result != policy.Fail {
		return nil
	}
	var missed []policy.Decision
	for _, one := range found.missed[i] {
		check := h.checkOf(i, one)
		if !check.NeedsProof() {
			continue
		}
		if decision := decide.Check(&check, h.given[i].Answers); decision.Result != policy.Pass {
			missed = append(missed, decision)
		}
	}
	return decide.Shortcomings(policy.Fail, missed)
}

// checkOf returns the check of an image for one attestor; empty if the attestor has no
// authorities.
func (h *imageEvaluation) checkOf(i int, one ask) policy.Check {
	check := policy.Check{Entry: "spec.validations", Image: h.given[i].Check.Image}
	p := h.rule.program
	r := policy.Requirement{Name: "attestors." + p.attestors[one.attestor].Name, Threshold: 1}
	for _, authority := range h.parties[i].people[one.attestor].authorities {
		r.Members = append(r.Members, policy.Member{Authority: authority, Sources: p.attestors[one.attestor].Sources})
	}
	switch {
	case len(r.Members) == 0:
	case one.attestation == signature:
		check.Requirements = []policy.Requirement{r}
	default:
		a := p.attestations[one.attestation]
		check.Attestations = []policy.Attestation{{
			Path: "attestations." + a.Name, PredicateType: a.Type, Artifact: a.Artifact, Signers: []policy.Requirement{r},
		}}
	}
	return check
}
