package authority

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/policy/requirements"
	"github.com/quaymaster/quaymaster/policy/slsa"
)

// buildFlags require SLSA provenance of every image. Known builders sign for themselves; for a builder of
// --builder, the signers of the other flags may sign, too.
type buildFlags struct {
	level    int
	builders []string
	uri, ref string
}

func (f *buildFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.level, "slsa-build-level", 0, "require SLSA provenance of a builder of this build level or a higher one, 1 to 3")
	flags.StringArrayVar(&f.builders, "builder", nil, "require SLSA provenance of the builder with this `id` (* and ** match a part)")
	flags.StringVar(&f.uri, "source-uri", "", "require SLSA provenance of a build from this `repository`, as github.com/org/app")
	flags.StringVar(&f.ref, "source-ref", "", "require SLSA provenance of a build from this whole git `reference`, as refs/tags/v1.2.3")
}

// check refuses flags without effect.
func (f *buildFlags) check(cmd *cobra.Command) error {
	for _, name := range []string{"slsa-build-level", "builder", "source-uri", "source-ref"} {
		flag := cmd.Flags().Lookup(name)
		if flag.Changed && (flag.Value.String() == "" || flag.Value.String() == "0" || flag.Value.String() == "[]") {
			return fmt.Errorf("--%s is empty; a variable may be unset", name)
		}
	}
	_, err := f.terms()
	return err
}

func (f *buildFlags) terms() (slsa.Terms, error) {
	terms := slsa.Terms{Level: f.level, Builders: f.builders}
	if f.uri != "" {
		source, err := slsa.ParseSource(f.uri)
		switch {
		case err != nil:
			return terms, fmt.Errorf("--source-uri: %w", err)
		case source.Ref != "":
			return terms, fmt.Errorf("--source-uri %s: name the reference in --source-ref", f.uri)
		}
		terms.Source = source
	}
	terms.Source.Ref = f.ref
	return terms, nil
}

// isGiven reports whether a flag requires provenance.
func (f *buildFlags) isGiven() bool { return f.level != 0 || len(f.builders) > 0 || f.uri+f.ref != "" }

// path is the first of the flags that is given, for messages.
func (f *buildFlags) path() string {
	switch {
	case f.level != 0:
		return "--slsa-build-level"
	case len(f.builders) > 0:
		return "--builder"
	case f.uri != "":
		return "--source-uri"
	}
	return "--source-ref"
}

// Verifies reports whether the flags suffice without another signer: the builder or the source is named.
// A level alone is met by every user of a known builder.
func (f *Flags) Verifies() bool {
	terms, err := f.builds.terms()
	return err == nil && terms.NamesBuild()
}

// built is the requirement of the flags; its terms are zero where there is none.
func (f *Flags) built() (requirements.Requirement, error) {
	terms, err := f.builds.terms()
	required := requirements.Requirement{Path: f.builds.path(), Provenance: terms}
	if err != nil || !f.builds.isGiven() {
		return required, err
	}
	required.Sources, err = f.sources()
	if err != nil || !f.Given() {
		return required, err
	}
	authorities, err := f.authorities()
	if err != nil {
		return required, err
	}
	for _, id := range f.builds.builders {
		if !strings.Contains(id, "*") { // a signer that flags name signs for the builder that they name
			required.Builders = append(required.Builders, slsa.Builder{Name: "of the flags", ID: id, Authorities: authorities})
		}
	}
	return required, nil
}
