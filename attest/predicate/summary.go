package predicate

import (
	"errors"
	"time"

	"github.com/quaymaster/quaymaster/attest"
)

// Summary is a SLSA verification summary v1: the result of verifying an artifact.
type Summary struct {
	// VerifierID is a URI that identifies the verifier.
	VerifierID string
	// Resource is a URI that identifies the verified artifact.
	Resource string
	// Passed is the result.
	Passed bool
	// Levels are the verified SLSA levels and properties.
	Levels []string
	// Verified is the time of verification; zero if it is absent.
	Verified time.Time
	// Policy is a URI of the policy.
	Policy       string
	PolicyDigest map[string]string
}

// ParseSummary parses a SLSA verification summary v1. Verifier, resource and a result of PASSED
// or FAILED are required.
func ParseSummary(s attest.Statement) (Summary, error) {
	var wire struct {
		Verifier     struct{ ID string }
		TimeVerified time.Time
		ResourceURI  string
		Policy       struct {
			URI    string
			Digest map[string]string
		}
		VerificationResult string
		VerifiedLevels     []string
	}
	if err := decode(s, &wire, attest.PredicateVSA); err != nil {
		return Summary{}, err
	}
	if err := errors.Join(
		required(s, "verifier id", wire.Verifier.ID),
		required(s, "resource URI", wire.ResourceURI),
	); err != nil {
		return Summary{}, err
	}
	if wire.VerificationResult != "PASSED" && wire.VerificationResult != "FAILED" {
		return Summary{}, errors.New("verification summary: its result is neither PASSED nor FAILED")
	}
	return Summary{
		VerifierID: wire.Verifier.ID, Resource: wire.ResourceURI, Passed: wire.VerificationResult == "PASSED",
		Levels: wire.VerifiedLevels, Verified: wire.TimeVerified, Policy: wire.Policy.URI, PolicyDigest: wire.Policy.Digest,
	}, nil
}
