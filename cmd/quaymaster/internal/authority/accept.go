package authority

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/attest"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/slsa"
	"github.com/quaymaster/quaymaster/report/vsa"
)

// summaryAge is the default limit for a summary's age.
const summaryAge = 24 * time.Hour

// acceptFlags require a verification summary in place of signatures.
type acceptFlags struct{ vsa.Terms }

func (f *acceptFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.Verifier, "accept-vsa", "", "require a verification summary of the verifier with this `URI`, in place of a signature")
	flags.DurationVar(&f.MaxAge, "accept-vsa-max-age", summaryAge, "maximum age of the verification summary")
	flags.IntVar(&f.Level, "accept-vsa-level", 0, "least SLSA build level that the verification summary states, 1 to 3")
	flags.StringVar(&f.PolicyDigest, "accept-vsa-policy", "", "`digest` (sha256:...) of the policies in the verification summary")
}

// check refuses flags without effect. given: the flags name a required signer.
func (f *acceptFlags) check(cmd *cobra.Command, given bool) error {
	if flag := cmd.Flags().Lookup("accept-vsa"); flag == nil || !flag.Changed {
		for _, name := range []string{"accept-vsa-max-age", "accept-vsa-level", "accept-vsa-policy"} {
			if cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s says which summaries --accept-vsa accepts", name)
			}
		}
		return nil
	}
	switch {
	case f.Verifier == "":
		return errors.New("--accept-vsa is empty; a variable may be unset")
	case !given:
		return errors.New("--accept-vsa: anyone can write a verification summary: name the signer of this verifier with --key or --certificate-identity")
	case f.MaxAge <= 0:
		return fmt.Errorf("--accept-vsa-max-age %s must be positive", f.MaxAge)
	case cmd.Flags().Changed("accept-vsa-level") && (f.Level < 1 || f.Level > slsa.Highest):
		return fmt.Errorf("--accept-vsa-level %d: want 1 to %d", f.Level, slsa.Highest)
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
		Condition: vsa.Condition{Terms: f.Terms, Resource: vsa.ResourceURI(of)},
	}
}
