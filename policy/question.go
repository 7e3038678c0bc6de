package policy

import (
	"errors"
	"slices"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/verify"
)

// Question is a query for one kind of claim by one authority.
type Question struct {
	Authority *verify.Authority
	Role      attest.Role
	// Predicate is the predicate type (or artifact type) of an attestation.
	Predicate string
	// Artifact: the attestation is a referrer that notation signed.
	Artifact bool
	Sources  []attest.Source
}

// SignatureQuestion returns the query for signatures, without an authority.
func (c *Check) SignatureQuestion() Question {
	return Question{Role: attest.Signature, Sources: c.Sources}
}

// StatementQuestion returns the query for statements of an attestation, without an authority.
func (c *Check) StatementQuestion(a *Attestation) Question {
	return Question{Role: attest.Attestation, Predicate: a.PredicateType, Artifact: a.Artifact, Sources: c.Sources}
}

// Answer is the result of one question.
type Answer struct {
	// Facts are the verified claims.
	Facts []verify.Fact
	// Rejections say why other evidence is no proof.
	Rejections []*verify.Rejection
	// Gaps are the errors of failed reads, or the reasons why an authority could not be
	// evaluated.
	Gaps []error
	// Instead names evidence of other kinds that was there, as in "an attestation
	// of type https://slsa.dev/provenance/v1".
	Instead []string
}

// Unsettled returns the gaps that may hide a later statement than the found ones, of which those
// without a trusted time have no order: statements that the registries in which they were found
// refused or failed to return, or that are beyond a bound. Of another repository only a
// refusal counts: the author of a workload causes it by the choice of pull secrets.
func (a Answer) Unsettled() (unread []error) {
	facts := slices.DeleteFunc(slices.Clone(a.Facts), func(f verify.Fact) bool { return f.SignedAt.IsZero() })
	for _, gap := range a.Gaps {
		of, ok := errors.AsType[attest.Gap](gap)
		kind, isHere := image.KindOf(gap), func(f verify.Fact) bool { return f.Origin.Repository == of.Repository }
		isChosen := kind == image.Refused || image.ByCredential(gap)
		if ok && kind != image.NotFound && (isChosen && len(facts) > 0 || slices.ContainsFunc(facts, isHere)) {
			unread = append(unread, gap)
		}
	}
	return unread
}

// Answers gives the answer to a question of the plan. The gate supplies it.
type Answers func(Question) Answer

// By returns the question for one member.
func (q Question) By(m Member) Question {
	q.Authority = m.Authority
	if len(m.Sources) > 0 {
		q.Sources = m.Sources
	}
	return q
}
