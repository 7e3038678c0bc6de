package policy

import (
	"github.com/quaymaster/quaymaster/attest"
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

func signatureOf(c *Check) Question {
	return Question{Role: attest.Signature, Sources: c.Sources}
}

func statementOf(c *Check, a *Attestation) Question {
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
	// disagreed: statements were verified, and the condition holds for none.
	disagreed bool
}

// Answers gives the answer to a question of the plan. The gate supplies it.
type Answers func(Question) Answer
