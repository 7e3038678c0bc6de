// Package bundle is the command quaymaster bundle, which creates and shows bundles of policies and
// trust.
package bundle

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy/bundle"
	"github.com/quaymaster/quaymaster/report"
)

// errNoResource reports that no file has a resource that a policy names.
var errNoResource = errors.New("give it with --resource FILE")

// New is the command.
func New(t command.Terminal) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Create and show bundles of policies",
		Long: `A bundle is one file with the policies, the trust and the look-ups of a gateway, for
verification without network access (docs/offline.md).

Exit status: that of the subcommand.`,
		Example: `  quaymaster bundle create -o bundle.tar.gz --from-cluster --context production
  quaymaster bundle show bundle.tar.gz
  quaymaster verify --bundle bundle.tar.gz --offline --oci-layout images/ -f deploy/`,
		Args: usage.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(bundleCreateCommand(t), bundleShowCommand(t))
	return cmd
}

func bundleShowCommand(t command.Terminal) *cobra.Command {
	var format, digest string
	cmd := &cobra.Command{
		Use:   "show FILE",
		Short: "Show the contents of a bundle",
		Long: `Show reads a bundle, refuses any deviation from the format, and lists the entries
with their SHA-256 digests, and the content that could not be included.

Exit status: 0 if the file is a bundle, 2 if it is none, or has another digest than
--bundle-digest.`,
		Example: `  quaymaster bundle show bundle.tar.gz
  quaymaster bundle show bundle.tar.gz -o json
  quaymaster bundle show bundle.tar.gz --bundle-digest sha256:8b1f...`,
		Args: usage.Arguments("a bundle", 1),
		RunE: func(_ *cobra.Command, names []string) error {
			if err := output.CheckDocument(format); err != nil {
				return err
			}
			var pinned image.Digest
			if digest != "" {
				var err error
				pinned, err = image.ParseDigest(digest)
				if err != nil {
					return fmt.Errorf("--bundle-digest: %w", err)
				}
			}
			read, err := bundle.OpenFile(names[0], pinned)
			if err != nil {
				return err
			}
			return showBundle(t, read, format)
		},
	}
	output.RegisterDocument(cmd, "output", &format)
	cmd.Flags().StringVar(&digest, "bundle-digest", "", "`digest` (sha256:...) that the file must have")
	return cmd
}

// Shown is the JSON of bundle show.
type Shown struct {
	Digest string         `json:"digest"`
	AsAt   string         `json:"evaluatedAs"` // admission or files
	Notes  []string       `json:"notes,omitempty"`
	Files  []bundle.Entry `json:"files"`
}

func showBundle(t command.Terminal, read *bundle.Read, format string) error {
	shown := Shown{Digest: read.Digest.String(), AsAt: "files", Notes: read.Notes, Files: read.Entries}
	if read.Gateway != nil {
		shown.AsAt = "admission"
	}
	if format != output.Text {
		return output.WriteDocument(t.Out, format, shown)
	}
	fmt.Fprintf(t.Out, "%s\nevaluates like %s\n\n", shown.Digest,
		map[string]string{"admission": "the gateway at admission", "files": "verify with files"}[shown.AsAt])
	for _, entry := range shown.Files {
		fmt.Fprintf(t.Out, "%s  %8d  %-24s %s\n", entry.SHA256[:12], entry.Size, entry.Path, report.Escape(entry.Name))
	}
	for _, note := range shown.Notes {
		fmt.Fprintf(t.Out, "\nnot included: %s\n", report.Escape(note))
	}
	return nil
}
