package authority

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/requirements"
)

// FlagsKind is the kind of the policies that flags define.
const FlagsKind = "Flags"

// timeFlags bound the time of signing: of the signers that other flags name, and the age of every image
// that policies verify.
type timeFlags struct {
	notBefore, notAfter    string
	minimumAge, maximumAge time.Duration
}

func (f *timeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.notBefore, "signed-not-before", "", "reject signatures before this `time` (RFC 3339; of the log or timestamp authority)")
	flags.StringVar(&f.notAfter, "signed-not-after", "", "reject signatures after this `time`")
	flags.DurationVar(&f.minimumAge, "minimum-age", 0, "require that the first signature or attestation is this old, as 72h (by log or timestamp)")
	flags.DurationVar(&f.maximumAge, "maximum-age", 0, "require that each signature and attestation that counts is at most this old")
}

// bounds are the times between which signatures must be made; zero: unbounded.
func (f *timeFlags) bounds() (notBefore, notAfter time.Time, err error) {
	notBefore, err = command.OptionalTime("--signed-not-before", f.notBefore)
	if err != nil {
		return notBefore, notAfter, err
	}
	notAfter, err = command.OptionalTime("--signed-not-after", f.notAfter)
	return notBefore, notAfter, err
}

// check refuses ages that bound nothing.
func (f *timeFlags) check(cmd *cobra.Command) error {
	for name, given := range map[string]time.Duration{"minimum-age": f.minimumAge, "maximum-age": f.maximumAge} {
		if cmd.Flags().Changed(name) && (given <= 0 || given > requirements.MaxAge) {
			return fmt.Errorf("--%s %s: want a positive time of at most %s", name, given, requirements.MaxAge)
		}
	}
	return nil
}

// Requirements compiles the flags about the age of images and about their builds into a policy; nil for
// none. It applies to every image, whichever policy verifies it.
func (f *Flags) Requirements() (*policy.Policy, error) {
	built, err := f.built()
	if err != nil {
		return nil, err
	}
	var list []requirements.Requirement
	for _, one := range []requirements.Requirement{
		{Path: "--minimum-age", MinimumAge: f.times.minimumAge}, {Path: "--maximum-age", MaximumAge: f.times.maximumAge}, built,
	} {
		if one.MinimumAge+one.MaximumAge > 0 || !one.Provenance.IsZero() {
			one.Images = []string{"*"}
			list = append(list, one)
		}
	}
	return requirements.Compile(FlagsKind, "command line", list)
}
