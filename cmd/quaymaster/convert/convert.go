// Package convert is the command quaymaster convert: policies of other systems as
// ImageValidatingPolicies.
package convert

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/policy/convert"
)

// convertFlags configure the conversion.
type convertFlags struct {
	from, root   string
	dropIdentity bool
}

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var f convertFlags
	cmd := &cobra.Command{
		Use:   "convert FILE",
		Short: "Convert policies to ImageValidatingPolicy",
		Long: `Convert reads a policy of another system and writes equivalent
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

Exit status: 0 if the policy was converted, 2 if it cannot be converted or read.`,
		Example: `  quaymaster convert values.yaml > policies.yaml
  quaymaster convert trustpolicy.json --root ~/.config/notation
  quaymaster convert /etc/containers/policy.json --root / --insecure-drop-signed-identity`,
		Args: usage.Arguments("a policy", 1),
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := readPolicy(t, args[0])
			if err != nil {
				return err
			}
			return f.convert(t, data, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.from, "from", "", "`format`: connaisseur, notation, containers, openshift, ratify, kyverno, sigstore (default: detected)")
	usage.Complete(cmd, "from", formats()...)
	flags.StringVar(&f.root, "root", "", "`folder` of the files that the policy names: / for local paths; for notation the parent of truststore/")
	flags.BoolVar(&f.dropIdentity, "insecure-drop-signed-identity", false, "do not require a signature's image name (signedIdentity) to match the repository")
	return cmd
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
