// Package convert is the command quaymaster convert: policies of other systems as
// ImageValidatingPolicies, policies of the gateway as the API server's own, and rules in JMESPath
// as rules in CEL.
package convert

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/convert"
	"github.com/quaymaster/quaymaster/policy/convert/cel"
	"github.com/quaymaster/quaymaster/policy/convert/native"
	"github.com/quaymaster/quaymaster/workload"
)

// convertFlags configure the conversion.
type convertFlags struct {
	from, root   string
	dropIdentity bool
	to           string
	native       nativeFlags
	check        checkFlags
	cel          celFlags
}

// description is the command's long help.
const description = `Convert reads a policy of another system and writes equivalent
ImageValidatingPolicies (policies.kyverno.io/v1) as YAML, with comments on subtle
differences. FILE may be - for standard input.

Supported formats: Connaisseur's application values (connaisseur), notation's
trustpolicy.json (notation), containers' policy.json (containers), OpenShift's
ImagePolicy and ClusterImagePolicy (openshift), Ratify's Verifier and Executor
(ratify), Kyverno's verifyImages (kyverno) and policy-controller's
ClusterImagePolicy (sigstore). The format is detected from the content, or set
with --from.

Nothing is dropped: a field without an equivalent in ImageValidatingPolicy is
an error with its path, and nothing is written. docs/convert.md has a table for
each format.

With --to native, convert reads ValidatingPolicies, MutatingPolicies and
ClusterPolicies with rules in CEL, of files and folders, and writes
ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings,
which an API server evaluates itself; with --static, as files that it loads
before it serves.

With --to cel, convert reads ClusterPolicies, Policies, cleanup policies and
PolicyExceptions of kyverno.io and writes policies of policies.kyverno.io, whose
rules are in CEL: ValidatingPolicies, MutatingPolicies, GeneratingPolicies,
ImageValidatingPolicies and DeletingPolicies. docs/convert-to-cel.md has what is
carried. A policy with a part that is not is refused whole; with --partial its
other rules are converted, and what stays is written as it is, and reported. With --output, each file gets one of its results in that
folder, and the test suites (kyverno-test.yaml) in the folders are converted, too.

With --check, convert writes no policy: it makes objects from the paths and values
that the policies and their results (--with, or those of --to native or --to cel)
read, evaluates both side by side, and shows each difference in verdict, message or
changed object with the smallest object that has it. Policies that stay are listed.
See docs/convert-check.md.

Exit status: 0 if the policy was converted, or if --check found no difference, 1 if
--check found one, 2 if a policy cannot be converted, read or compared.`

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert FILE...",
		Short: "Convert policies to ImageValidatingPolicy, to CEL, or to the API server's own",
		Long:  description,
		Example: `  quaymaster convert values.yaml > policies.yaml
  quaymaster convert trustpolicy.json --root ~/.config/notation
  quaymaster convert /etc/containers/policy.json --root / --insecure-drop-signed-identity
  quaymaster convert --to native policies/ > native.yaml
  quaymaster convert --to native --static admission --exempt-namespaces kube-system policies/
  quaymaster convert --to cel --partial policies/ > validating.yaml
  quaymaster convert --to cel --output converted policies/
  quaymaster convert --to cel --check --report review.md policies/
  helm template . | quaymaster convert --to cel --check -
  quaymaster convert --check policies/ --with converted/ -f manifests/`,
		Args: usage.Arguments("a policy", 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.usable(cmd, args); err != nil {
				return err
			}
			switch {
			case f.check.isSet:
				return f.check.run(cmd.Context(), t, args, f.results)
			case f.to == toNative:
				return f.native.convert(t, args)
			case f.to == toCEL:
				return f.cel.convert(cmd.Context(), t, args, f.check)
			}
			data, err := readPolicy(t, args[0])
			if err != nil {
				return err
			}
			return f.convert(t, data, args[0])
		},
	}
	f.register(cmd)
	return cmd
}

func (f *convertFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "`format`: connaisseur, notation, containers, openshift, ratify, kyverno, sigstore (default: detected)")
	usage.Complete(cmd, "from", formats()...)
	flags.StringVar(&f.root, "root", "", "`folder` of the files that the policy names: / for local paths; for notation the parent of truststore/")
	flags.BoolVar(&f.dropIdentity, "insecure-drop-signed-identity", false, "do not require a signature's image name (signedIdentity) to match the repository")
	flags.StringVar(&f.to, "to", toImages,
		"`kind` of the result: "+toImages+", "+toNative+" (ValidatingAdmissionPolicy, MutatingAdmissionPolicy), or "+toCEL+" (ValidatingPolicy)")
	usage.Complete(cmd, "to", toImages, toNative, toCEL)
	f.native.register(cmd)
	f.cel.register(cmd)
	f.check.register(cmd)
}

// The values of --to.
const (
	toImages = "imagevalidating"
	toNative = "native"
	toCEL    = "cel"
)

// usable refuses flags and arguments of another form of the command.
func (f *convertFlags) usable(cmd *cobra.Command, args []string) error {
	if err := usage.Choice("--to", f.to, toImages, toNative, toCEL); err != nil {
		return err
	}
	if err := f.check.check(f.to); err != nil {
		return err
	}
	own := []string{"from", "root", "insecure-drop-signed-identity"}
	var others []string
	switch {
	case f.to == toNative:
		others = append(own, celNames()...)
	case f.to == toCEL:
		others = append(own, nativeNames()...)
		if f.check.isSet { // nothing is written
			others = append(others, "output")
		}
	case f.check.isSet:
		others = slices.Concat(own, nativeNames(), celNames())
	default:
		others = append(nativeNames(), celNames()...)
		if err := usage.Arguments("a policy", 1)(cmd, args); err != nil {
			return err
		}
	}
	for _, name := range others {
		if cmd.Flags().Changed(name) {
			if f.check.isSet {
				return fmt.Errorf("--%s has no effect with --check", name)
			}
			return fmt.Errorf("--%s has no effect with --to %s", name, f.to)
		}
	}
	return nil
}

// results converts policies for a comparison with them.
func (f *convertFlags) results(source []workload.Object) (made conversion, err error) {
	if f.to == toCEL {
		made.of, err = f.cel.parts(source)
		if err == nil {
			made.text, err = cel.YAML(made.of.Policies)
		}
		return made, err
	}
	policies, err := f.native.result(source)
	if err != nil {
		return made, err
	}
	made.text, err = native.YAML(policies)
	return made, err
}

// readPolicy reads the file, or standard input for -.
func readPolicy(t command.Terminal, name string) (data []byte, err error) {
	if name == "-" {
		data, err = limit.ReadAll(t.In, convert.MaxInput, "standard input")
	} else {
		data, err = limit.ReadFile(name, convert.MaxInput, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	return data, nil
}

func (f *convertFlags) convert(t command.Terminal, data []byte, name string) error {
	if f.from != "" {
		if err := usage.Choice("--from", f.from, formats()...); err != nil {
			return err
		}
	}
	options := convert.Options{From: convert.Format(f.from), DropSignedIdentity: f.dropIdentity}
	if f.root != "" {
		root, err := os.OpenRoot(f.root)
		if err != nil {
			return fmt.Errorf("--root: %w", err)
		}
		defer func() { _ = root.Close() }()
		options.Files = root.FS()
	}
	out, err := convert.Convert(data, options)
	if err != nil {
		return fmt.Errorf("convert %s: %w", name, err)
	}
	_, err = t.Out.Write(out)
	return err
}

func formats() []string {
	var names []string
	for _, format := range convert.Formats() {
		names = append(names, string(format))
	}
	return names
}
