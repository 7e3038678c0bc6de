package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/authority"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/manifest"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/workload"
)

// inputFlags select the images.
type inputFlags struct {
	files     []string
	payloads  []string
	namespace string
}

func (f *inputFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "manifest `file`, folder, or - for standard input; the workloads' images are verified")
	cmd.Flags().StringArrayVar(&f.payloads, "payload", nil, "JSON or YAML `file`, or -, for policies with evaluation.mode JSON; may be repeated")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "default", "`namespace` of images and of manifests without one")
}

// requests reads the images of the arguments and files.
func (f *inputFlags) requests(t command.Terminal, images []string) ([]gate.Request, error) {
	isFile := func(name string) bool { return name != "-" }
	if len(slices.DeleteFunc(slices.Concat(f.files, f.payloads), isFile)) > 1 {
		return nil, errors.New("standard input can be read once: give - to -f or to --payload, once")
	}
	var requests []gate.Request
	for _, written := range images {
		if _, err := image.Parse(written); err != nil {
			return nil, err
		}
		request, err := gate.ForImage(written, f.namespace)
		if err != nil {
			return nil, err
		}
		requests = append(requests, request)
	}
	for _, name := range f.files {
		objects, err := manifest.Read(name, t.In)
		if errors.Is(err, workload.ErrNoKind) {
			err = fmt.Errorf("%w; what is none is judged with --payload FILE", err)
		}
		if err != nil {
			return nil, fmt.Errorf("-f %s: %w", name, err)
		}
		for _, object := range objects {
			request := gate.Request{Object: object}
			if object.Namespace() == "" {
				request.Subject.Namespace = f.namespace
			}
			requests = append(requests, request)
		}
	}
	documents, err := f.documents(t)
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		requests = append(requests, gate.ForDocument(document))
	}
	if len(requests) == 0 {
		return nil, errors.New("nothing to verify: name an image, manifests with -f FILE, or documents with --payload FILE")
	}
	return requests, nil
}

// documents reads the files of --payload. A member called kind does not make a document a
// Kubernetes object.
func (f *inputFlags) documents(t command.Terminal) ([]workload.Object, error) {
	var all []workload.Object
	for _, name := range f.payloads {
		read, err := manifest.ReadPayload(name, t.In)
		if err != nil {
			return nil, fmt.Errorf("--payload %s: %w", name, err)
		}
		all = append(all, read...)
	}
	return all, nil
}

func verifyCommand(t command.Terminal) *cobra.Command {
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
decided. Formats are text, json (docs/record.md), sarif, junit, markdown,
github (annotations of GitHub Actions), policyreport and openreports; docs/ci.md
shows examples. Findings name the line of the image in its manifest. vsa are
SLSA verification summaries, one on a line, signed with --vsa-key (docs/vsa.md).

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
				Outcomes: outcomes, Failure: err, Reproduce: output.CommandLine(cmd), Summarize: summary.writer(cmd.Context(), t, &ask.setup),
			})
		},
	}
	ask.register(cmd)
	outputs.Register(cmd)
	summary.register(cmd)
	return cmd
}

func explainCommand(t command.Terminal) *cobra.Command {
	var (
		ask          question
		requireMatch bool
	)
	cmd := &cobra.Command{
		Use:   "explain IMAGE... | -f FILE | --payload FILE",
		Short: "Explain each step of a verdict",
		RunE: func(cmd *cobra.Command, images []string) error {
			outcomes, err := ask.judge(cmd, t, images)
			if err != nil {
				return err
			}
			for _, outcome := range outcomes {
				if err := report.Tree(t.Out, outcome, report.TreeOptions{Color: t.Color()}); err != nil {
					return err
				}
			}
			return output.Exit(t, outcomes, requireMatch)
		},
	}
	ask.register(cmd)
	output.RegisterRequireMatch(cmd, &requireMatch)
	return cmd
}

// question is a request to the gate: the images, the trusted authorities, and the gate's inputs.
type question struct {
	input       inputFlags
	authorities authority.Flags
	setup       setup.Flags
}

func (q *question) register(cmd *cobra.Command) {
	q.input.register(cmd)
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
	if len(q.input.payloads) > 0 && q.authorities.Given() {
		return nil, errors.New("--payload: --key, --certificate-... and --notation-cert do not say where the images of a document are; write a policy with evaluation.mode JSON, and leave them out")
	}
	requests, err := q.input.requests(t, images)
	if err != nil {
		return nil, err
	}
	ctx := cmd.Context()
	wired, err := q.setup.NewEngine(ctx, t, &q.authorities, requests)
	if err != nil {
		return nil, err
	}
	progress := output.NewProgress(t)
	outcomes := wired.DecideAll(ctx, requests, progress.Verified)
	progress.Clear()
	if ctx.Err() != nil {
		fmt.Fprintln(t.Err, "quaymaster: interrupted; nothing is decided")
		return nil, command.Status(command.ExitError)
	}
	return outcomes, nil
}
