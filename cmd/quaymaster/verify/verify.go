// Package verify is the commands quaymaster verify and quaymaster explain.
package verify

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/flagsource"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/usage"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/policy/hint"
	"github.com/quaymaster/quaymaster/report"
)

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var (
		ask     question
		outputs output.Flags
		summary vsaFlags
	)
	cmd := &cobra.Command{
		Use:   "verify IMAGE... | -f FILE | --payload FILE",
		Short: "Verify image signatures and attestations",
		Long: `Verify verifies the signatures and attestations of images, named or found in
manifests, and reports which may run and why.

An image named alone is evaluated as that of a Pod, in the namespace of -n. Of
several --key, one must match; with --policy too, the policies and the flags must
both accept the image. A folder of --policy may contain the ConfigMaps, Secrets
and Namespaces that its policies look up.

With --payload, image policies in JSON mode evaluate every document and define the
location of its images: a parsed Dockerfile, a Terraform plan, the event of a CI
system. Policies for Kubernetes objects do not apply to it, even if it looks like
one: pass those with -f. The images of a payload are not pinned.

Outputs: -o FORMAT writes to standard output, -o FORMAT=PATH to a file; it may be
given several times. Files are also written if images are denied or nothing could be
decided. Formats are text, json and yaml (docs/record.md), sarif, junit, markdown,
github (annotations of GitHub Actions), policyreport and openreports; docs/ci.md
shows examples. Findings name the line of the image in its manifest. vsa writes
SLSA verification summaries, one per line, signed with --vsa-key (docs/vsa.md).

Each image is verified once per run, even if several objects or files use it.

Exit status: 0 if all may run, 1 if one is denied, 3 if one could not be
verified (network, registry, trust), 2 for wrong use.`,
		Example: `  quaymaster verify --key cosign.pub registry.example/app:v1
  quaymaster verify --policy policies/ -f deploy/
  helm template web ./chart | quaymaster verify --policy policies/ -f - -o text -o sarif=web.sarif
  terraform show -json plan.out | quaymaster verify --policy ci.yaml --payload -
  quaymaster verify ghcr.io/org/app:v1 \
    --certificate-identity-regexp 'https://github.com/org/.*' \
    --certificate-oidc-issuer https://token.actions.githubusercontent.com`,
		RunE: func(cmd *cobra.Command, images []string) error {
			if err := summary.prepare(cmd, t, &outputs, &ask.setup); err != nil {
				return err
			}
			files, err := outputs.Open(t)
			if err != nil {
				return err
			}
			outcomes, err := ask.judge(cmd, t, images)
			return outputs.Report(t, files, &output.Verdicts{
				Outcomes: outcomes, Failure: err, Reproduce: output.CommandLine(cmd), Summarize: summary.writer(cmd.Context(), t, &ask.setup), Flags: flagsource.Of(cmd),
			})
		},
	}
	ask.register(cmd)
	outputs.Register(cmd)
	summary.register(cmd)
	return cmd
}

// NewExplain is the command quaymaster explain.
func NewExplain(t command.Terminal) *cobra.Command {
	var (
		ask          question
		requireMatch bool
		format, code string
	)
	cmd := &cobra.Command{
		Use:   "explain IMAGE... | -f FILE | --payload FILE",
		Short: "Explain each step of a verdict",
		Long: `Explain evaluates images as verify does, and prints each step: the digest, the
policies that match, their requirements, the evidence for each, and the reasons.
As JSON and YAML it prints the record of verify (docs/record.md).

With --code it explains a reason code, and verifies nothing.

Exit status: 0 if all may run, 1 if one is denied, 3 if one could not be
verified (network, registry, trust), 2 for wrong use.`,
		Example: `  quaymaster explain --policy policies/ registry.example/app:v1
  quaymaster explain --code wrong-identity
  quaymaster explain --key cosign.pub -f deploy/web.yaml
  helm template web ./chart | quaymaster explain --policy policies/ -f -`,
		RunE: func(cmd *cobra.Command, images []string) error {
			if err := output.CheckDocument(format); err != nil {
				return err
			}
			if code != "" {
				return explainCode(cmd, t, code, format, images)
			}
			outcomes, err := ask.judge(cmd, t, images)
			if err != nil {
				return err
			}
			if err := writeSteps(cmd, t, outcomes, format); err != nil {
				return err
			}
			return output.Exit(t, outcomes, requireMatch)
		},
	}
	ask.register(cmd)
	output.RegisterRequireMatch(cmd, &requireMatch)
	output.RegisterDocument(cmd, "output", &format)
	cmd.Flags().StringVar(&code, "code", "", "explain a reason `code`, such as wrong-key, in place of images")
	usage.Complete(cmd, "code", hint.Codes()...)
	return cmd
}

// writeSteps writes the steps as text, or the record of verify.
func writeSteps(cmd *cobra.Command, t command.Terminal, outcomes []gate.Outcome, format string) error {
	if format != output.Text {
		list := report.NewList(outcomes)
		list.Flags = flagsource.Of(cmd)
		return output.WriteAs(t.Out, format, list.Write)
	}
	for _, outcome := range outcomes {
		if err := report.Tree(t.Out, outcome, report.TreeOptions{Color: t.Color()}); err != nil {
			return err
		}
	}
	return nil
}

// question is a request to the gate: the images, the trusted authorities, and the gate's inputs.
type question struct {
	input       manifest.Flags
	authorities authority.Flags
	setup       setup.Flags
}

func (q *question) register(cmd *cobra.Command) {
	q.input.Register(cmd)
	q.authorities.Register(cmd)
	q.setup.Register(cmd)
}

// judge wires a gate from the flags and evaluates the request.
func (q *question) judge(cmd *cobra.Command, t command.Terminal, images []string) ([]gate.Outcome, error) {
	if err := q.setup.UnpackBundle(&q.authorities); err != nil {
		return nil, err
	}
	if err := q.authorities.Check(cmd); err != nil {
		return nil, err
	}
	if command.Inputs(q.input.Files, q.input.Payloads, q.authorities.Keys) > 1 {
		return nil, errors.New("standard input can be read once: give - to one of -f, --payload and --key, once")
	}
	if len(q.input.Payloads) > 0 && q.authorities.Given() {
		return nil, errors.New("--payload: --key, --certificate-... and --notation-cert do not say where the images of a document are; write a policy with evaluation.mode JSON, and leave them out")
	}
	definitions, err := q.setup.Definitions()
	if err != nil {
		return nil, err
	}
	q.input.Definitions = definitions
	requests, err := q.input.Requests(t, images)
	if err != nil {
		return nil, err
	}
	q.setup.Evaluated = q.input.Evaluated
	ctx := cmd.Context()
	wired, err := q.setup.NewEngine(ctx, t, &q.authorities, requests)
	if err != nil {
		return nil, err
	}
	progress := output.NewProgress(t)
	end := progress.Wait("verifying")
	outcomes := q.input.Scopes(t).DecideAll(ctx, wired, requests, progress.Verified)
	end()
	if ctx.Err() != nil {
		fmt.Fprintln(t.Err, "quaymaster: interrupted; nothing is decided")
		return nil, command.Status(command.ExitError)
	}
	return outcomes, nil
}
