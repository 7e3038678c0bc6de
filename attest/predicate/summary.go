package predicate

import (
	"errors"
	"time"

	"github.com/quaymaster/quaymaster/attest"
)

// Summary is a SLSA verification summary v1: somebody has verified an artifact,
// and says how that went.
type Summary struct {
	// VerifierID is a URI that names who verified.
	VerifierID string
	// Resource is a URI that names what was verified.
	Resource string
	// Passed is the result.
	Passed bool
	// Levels are the SLSA levels and properties that were verified.
	Levels []string
	// Verified is when; zero if the summary does not say.
	Verified time.Time
	// Policy is a URI of the policy that it was verified against.
	Policy       string
	PolicyDigest map[string]string
}

// ParseSummary reads a SLSA verification summary v1. Verifier, resource and a
// result of PASSED or FAILED must be there: a summary without them is none.
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
