package vsa

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
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
	// Level is the least SLSA build level, 1 to 3; 0 means any, also one that was not evaluated.
	Level int
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
	summary, err := predicates.ParseSummary(attest.Statement{PredicateType: attest.PredicateVSA, Predicate: raw})
	if err != nil {
		return false, err.Error(), nil //nolint:nilerr // invalid summaries do not satisfy the condition
	}
	age := time.Since(summary.Verified)
	switch {
	case summary.VerifierID != c.Verifier:
		return false, fmt.Sprintf("the summary is of the verifier %s, not %s", summary.VerifierID, c.Verifier), nil
	case summary.Resource != c.Resource:
		return false, fmt.Sprintf("the summary is about %s, not %s", summary.Resource, c.Resource), nil
	case !summary.Passed || slices.Contains(summary.Levels, Failed):
		return false, "the summary states that the image failed", nil
	case summary.Verified.IsZero():
		return false, "the summary has no time of verification", nil
	case age > c.MaxAge:
		return false, fmt.Sprintf("the summary was verified %s ago, at most %s is accepted", age.Round(time.Second), c.MaxAge), nil
	case age < -clockSkew:
		return false, fmt.Sprintf("the summary was verified at %s, which is in the future", summary.Verified.Format(time.RFC3339)), nil
	}
	if level := buildLevel(summary.Levels); level < c.Level {
		return false, fmt.Sprintf("the summary has the levels %q, and SLSA build level %d is required", summary.Levels, c.Level), nil
	}
	if c.PolicyDigest != "" && c.PolicyDigest != "sha256:"+summary.PolicyDigest["sha256"] {
		return false, fmt.Sprintf("the summary was verified against other policies (sha256:%s)", summary.PolicyDigest["sha256"]), nil
	}
	return true, "", nil
}

// buildLevel returns the highest level of the build track; 0 for none.
func buildLevel(levels []string) (highest int) {
	for _, name := range levels {
		text, ok := strings.CutPrefix(name, levelPrefix)
		if level, err := strconv.Atoi(text); ok && err == nil && levelName(level) == name {
			highest = max(highest, level)
		}
	}
	return highest
}
