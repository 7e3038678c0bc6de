// Package tree is the command quaymaster tree, which shows the claims about an image as a tree.
package tree

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
)

// flags select the image's pod, the inputs and the output.
type flags struct {
	setup             setup.Flags
	namespace, output string
}

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "tree IMAGE",
		Short: "Show the claims about an image as a tree",
		Long: `Tree shows what a registry has about one digest: the image with its complete digest
and, for an index, its platforms; and below it signatures, attestations, SBOMs,
Sigstore bundles and notation signatures, each with its own digest and its signer.

Without --policy nothing is verified: a signer is shown as claimed, since any user with
push access can write it. A signature by a key names no signer.

With --policy each claim has what it verifies for: the policies that match the
image of a Pod in the namespace of -n, the attestors that it verifies for, and
otherwise the reason why it verifies for none. --bundle and --from-cluster provide
policies as well. A trusted claim is no verdict: conditions, counts and other rules
are evaluated by quaymaster verify and explain.

Digests are complete. The digest of a claim is that of its signed document, in the
manifest that is shown next to it.

Exit status: 0 if the tree was read, 3 if a part of it could not be read or verified
(network, registry, trust), 2 for wrong use.`,
		Example: `  quaymaster tree registry.example/app:v1
  quaymaster tree --policy policies/ registry.example/app:v1
  quaymaster tree --oci-layout image/ --offline -o json registry.example/app:v1`,
		RunE: func(cmd *cobra.Command, images []string) error {
			if len(images) != 1 {
				return fmt.Errorf("want one image, found %d", len(images))
			}
			if err := output.CheckDocument(f.output); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), max(f.setup.Timeout, 0))
			defer cancel()
			end := output.Wait(t, "reading "+images[0])
			tree, err := f.read(ctx, t, images[0])
			end()
			if err != nil {
				return err
			}
			return f.print(t, tree)
		},
	}
	f.setup.Register(cmd)
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "default", "`namespace` of the image's Pod, for policies")
	output.RegisterDocument(cmd, "output", &f.output)
	return cmd
}

// hasPolicies reports whether policies are named.
func (f *flags) hasPolicies() bool {
	return len(f.setup.Policies) > 0 || f.setup.Bundle.File != "" || f.setup.Cluster.Use
}

// read reads the tree. An error is one of use; what could not be read is in the tree.
func (f *flags) read(ctx context.Context, t command.Terminal, written string) (*Tree, error) {
	ref, err := image.Parse(written)
	if err != nil {
		return nil, err
	}
	if f.setup.Timeout <= 0 {
		return nil, fmt.Errorf("--timeout %s must be positive", f.setup.Timeout)
	}
	inputs := manifest.Flags{Namespace: f.namespace}
	requests, err := inputs.Requests(t, []string{written})
	if err != nil {
		return nil, err
	}
	r := reader{ref: ref}
	known := engine.NewResources()
	if f.hasPolicies() {
		r.trust = &trusting{}
		known, err = f.judge(ctx, t, requests, r.trust)
		if err != nil {
			return nil, err
		}
	} else if f.setup.Offline && len(f.setup.Layouts) == 0 {
		return nil, errors.New("--offline opens no connection, so the image must come from --oci-layout")
	}
	sources, err := f.setup.Registries(t, known, requests)
	if err != nil {
		return nil, err
	}
	r.session, err = sources.Open(ctx, gate.Access{}, ref.Repository())
	if err != nil {
		return nil, err
	}
	return r.tree(ctx), nil
}

// judge has the gate evaluate the image, for the checks of the policies that match it.
func (f *flags) judge(ctx context.Context, t command.Terminal, requests []gate.Request, into *trusting) (*engine.Resources, error) {
	authorities := authority.OfKeys(nil, false)
	if err := f.setup.UnpackBundle(authorities); err != nil {
		return nil, err
	}
	wired, err := f.setup.NewEngine(ctx, t, authorities, requests)
	if err != nil {
		return nil, err
	}
	into.verifier, err = engine.NewProver(wired.From.Store.Snapshot())
	if err != nil {
		wired.From.Close()
		return nil, err
	}
	for _, outcome := range wired.DecideAll(ctx, requests, nil) {
		into.learn(ctx, outcome)
	}
	return wired.Resources, nil
}

// print writes the tree, and returns the exit status.
func (f *flags) print(t command.Terminal, tree *Tree) error {
	var err error
	if f.output == output.Text {
		_, err = io.WriteString(t.Out, tree.text())
	} else {
		err = output.WriteDocument(t.Out, f.output, tree)
	}
	if err != nil {
		return fmt.Errorf("write the tree: %w", err)
	}
	if len(tree.Errors) > 0 {
		return command.Status(command.ExitError)
	}
	return nil
}
