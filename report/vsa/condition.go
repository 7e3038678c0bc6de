package vsa

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/quaymaster/quaymaster/attest"
	predicates "github.com/quaymaster/quaymaster/attest/predicate"
	"github.com/quaymaster/quaymaster/policy"
)

// clockSkew is the accepted lead of the verifier's clock.
const clockSkew = 5 * time.Minute

// Terms select the acceptable summaries.
type Terms struct {
	// Verifier is the URI of the verifier.
	Verifier string
	// MaxAge is the maximum age of a summary.
	MaxAge time.Duration
	// PolicyDigest is the digest of the verified policies; empty means any.
	PolicyDigest string
}

var _ policy.Condition = Condition{}

// Condition requires a fresh summary with result PASSED. It is evaluated with every decision, so
// that a cache cannot extend the age.
type Condition struct {
	Terms
	// Resource is the ResourceURI of the image.
	Resource string
}

// Holds implements policy.Condition.
func (c Condition) Holds(data any) (holds bool, why string, err error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return false, "", fmt.Errorf("verification summary: %w", err)
	}
	said, err := predicates.ParseSummary(attest.Statement{PredicateType: attest.PredicateVSA, Predicate: raw})
	if err != nil {
		return false, err.Error(), nil //nolint:nilerr // invalid summaries do not satisfy the condition
	}
	age := time.Since(said.Verified)
	switch {
	case said.VerifierID != c.Verifier:
		return false, fmt.Sprintf("it is of the verifier %s, not %s", said.VerifierID, c.Verifier), nil
	case said.Resource != c.Resource:
		return false, fmt.Sprintf("it is about %s, not %s", said.Resource, c.Resource), nil
	case !said.Passed || slices.Contains(said.Levels, Failed):
		return false, "it says that the image failed", nil
	case said.Verified.IsZero():
		return false, "it does not say when it verified", nil
	case age > c.MaxAge:
		return false, fmt.Sprintf("it verified %s ago, at most %s is accepted", age.Round(time.Second), c.MaxAge), nil
	case age < -clockSkew:
		return false, fmt.Sprintf("it says that it verified at %s, which is yet to come", said.Verified.Format(time.RFC3339)), nil
	}
	if c.PolicyDigest != "" && c.PolicyDigest != "sha256:"+said.PolicyDigest["sha256"] {
		return false, fmt.Sprintf("it verified against other policies (sha256:%s)", said.PolicyDigest["sha256"]), nil
	}
	return true, "", nil
}
