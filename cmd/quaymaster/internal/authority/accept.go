package authority

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/attest/predicate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/report/vsa"
)

const (
	// summaryAge is the default limit for a summary's age.
	summaryAge = 24 * time.Hour
	// clockSkew is the accepted lead of the verifier's clock.
	clockSkew = 5 * time.Minute
)

// acceptFlags require a verification summary in place of signatures.
type acceptFlags struct {
	Verifier     string
	MaxAge       time.Duration
	PolicyDigest string
}

func (f *acceptFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Verifier, "accept-vsa", "", "require a verification summary of the verifier with this `URI`, in place of a signature")
	flags.DurationVar(&f.MaxAge, "accept-vsa-max-age", summaryAge, "maximum age of the verification summary")
	flags.StringVar(&f.PolicyDigest, "accept-vsa-policy", "", "`digest` (sha256:...) of the policies in the verification summary")
}

// check refuses flags without effect. given: the flags name a required signer.
func (f *acceptFlags) check(cmd *cobra.Command, given bool) error {
	if flag := cmd.Flags().Lookup("accept-vsa"); flag == nil || !flag.Changed {
		for _, name := range []string{"accept-vsa-max-age", "accept-vsa-policy"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s says which summaries --accept-vsa accepts", name)
			}
		}
		return nil
	}
	switch {
	case f.Verifier == "":
		return errors.New("--accept-vsa is given and empty; a variable may be unset")
	case !given:
		return errors.New("--accept-vsa: anybody can write a verification summary; say with --key or --certificate-identity who signs those of this verifier")
	case f.MaxAge <= 0:
		return fmt.Errorf("--accept-vsa-max-age %s: want more than nothing", f.MaxAge)
	}
	if f.PolicyDigest != "" {
		if _, err := image.ParseDigest(f.PolicyDigest); err != nil {
			return fmt.Errorf("--accept-vsa-policy: %w", err)
		}
	}
	return nil
}

// attestation requires a summary of one image.
func (f *acceptFlags) attestation(of image.Repository, signers []policy.Requirement) policy.Attestation {
	return policy.Attestation{
		Path: "--accept-vsa " + f.Verifier, PredicateType: attest.PredicateVSA, Signers: signers,
		Condition: accepted{terms: *f, resource: vsa.ResourceURI(of)},
	}
}

// accepted requires a fresh summary with result PASSED. It is evaluated with every decision, so
// that a cache cannot extend the age.
type accepted struct {
	terms    acceptFlags
	resource string
}

// Holds implements policy.Condition.
func (a accepted) Holds(data any) (holds bool, why string, err error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return false, "", fmt.Errorf("verification summary: %w", err)
	}
	said, err := predicate.ParseSummary(attest.Statement{PredicateType: attest.PredicateVSA, Predicate: raw})
	if err != nil {
		return false, err.Error(), nil //nolint:nilerr // invalid summaries do not satisfy the condition
	}
	age := time.Since(said.Verified)
	switch {
	case said.VerifierID != a.terms.Verifier:
		return false, fmt.Sprintf("it is of the verifier %s, not %s", said.VerifierID, a.terms.Verifier), nil
	case said.Resource != a.resource:
		return false, fmt.Sprintf("it is about %s, not %s", said.Resource, a.resource), nil
	case !said.Passed || slices.Contains(said.Levels, vsa.Failed):
		return false, "it says that the image failed", nil
	case said.Verified.IsZero():
		return false, "it does not say when it verified", nil
	case age > a.terms.MaxAge:
		return false, fmt.Sprintf("it verified %s ago, at most %s is accepted", age.Round(time.Second), a.terms.MaxAge), nil
	case age < -clockSkew:
		return false, fmt.Sprintf("it says that it verified at %s, which is yet to come", said.Verified.Format(time.RFC3339)), nil
	}
	if a.terms.PolicyDigest != "" && a.terms.PolicyDigest != "sha256:"+said.PolicyDigest["sha256"] {
		return false, fmt.Sprintf("it verified against other policies (sha256:%s)", said.PolicyDigest["sha256"]), nil
	}
	return true, "", nil
}
