package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/workload"
)

// inputFlags say which images are judged.
type inputFlags struct {
	files     []string
	namespace string
}

func (f *inputFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.files, "filename", "f", nil, "manifest `file`, folder, or - for standard input; the images of its workloads are judged")
	cmd.Flags().StringVarP(&f.namespace, "namespace", "n", "default", "`namespace` of images and of manifests that name none")
}

// requests reads what the arguments and files name.
func (f *inputFlags) requests(t terminal, images []string) ([]gate.Request, error) {
	var requests []gate.Request
	for _, written := range images {
		request, err := gate.ForImage(written, f.namespace)
		if err != nil {
			return nil, err
		}
		requests = append(requests, request)
	}
	for _, name := range f.files {
		objects, err := readManifests(name, t.in)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			request := gate.Request{Object: object}
			if object.Namespace() == "" {
				request.Subject.Namespace = f.namespace
			}
			requests = append(requests, request)
		}
	}
	if len(requests) == 0 {
		return nil, errors.New("nothing to verify: name an image, or manifests with -f FILE")
	}
	return requests, nil
}

func readManifests(name string, in io.Reader) ([]workload.Object, error) {
	if name == "-" {
		return workload.Read(in, "standard input")
	}
	paths, err := manifestFiles(name)
	if err != nil {
		return nil, fmt.Errorf("-f %s: %w", name, err)
	}
	var objects []workload.Object
	for _, path := range paths {
		read, err := readManifest(path)
		if err != nil {
			return nil, err
		}
		objects = append(objects, read...)
	}
	return objects, nil
}

func readManifest(path string) ([]workload.Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	return workload.Read(file, path)
}

// outputFlags say how the outcome is told.
type outputFlags struct {
	formats      []string
	verbose      bool
	requireMatch bool
}

func (f *outputFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.formats, "output", "o", []string{"text"}, "`format[=path]`: text or json; may be repeated")
	cmd.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "tell durations and registry requests too")
	cmd.Flags().BoolVar(&f.requireMatch, "require-match", false, "fail if no policy speaks of an image")
}

func verifyCommand(t terminal) *cobra.Command {
	var (
		input       inputFlags
		authorities authorityFlags
		setup       setupFlags
		output      outputFlags
	)
	cmd := &cobra.Command{
		Use:   "verify IMAGE... | -f FILE",
		Short: "Prove images and say which may run",
		Long: `Verify proves the signatures and attestations of images, named or found in
manifests, and says which may run and why.

Exit status: 0 if all may run, 1 if one is denied, 3 if one could not be
verified (network, registry, trust), 2 for wrong use.`,
		Example: `  quaymaster verify --key cosign.pub registry.example/app:v1
  quaymaster verify --policy policies/ -f deploy/
  quaymaster verify --certificate-identity-regexp 'https://github.com/org/.*' \
    --certificate-oidc-issuer https://token.actions.githubusercontent.com ghcr.io/org/app:v1`,
		RunE: func(cmd *cobra.Command, images []string) error {
			outcomes, err := judge(cmd.Context(), t, images, &input, &authorities, &setup)
			if err != nil {
				return err
			}
			return output.tell(t, outcomes, commandLine(cmd))
		},
	}
	input.register(cmd)
	authorities.register(cmd)
	setup.register(cmd)
	output.register(cmd)
	return cmd
}

func explainCommand(t terminal) *cobra.Command {
	var (
		input       inputFlags
		authorities authorityFlags
		setup       setupFlags
	)
	cmd := &cobra.Command{
		Use:   "explain IMAGE... | -f FILE",
		Short: "Show every step of a verdict, as a tree",
		RunE: func(cmd *cobra.Command, images []string) error {
			outcomes, err := judge(cmd.Context(), t, images, &input, &authorities, &setup)
			if err != nil {
				return err
			}
			for _, outcome := range outcomes {
				if err := report.Tree(t.out, outcome, report.TreeOptions{Color: t.color()}); err != nil {
					return err
				}
			}
			return exit(outcomes, false)
		},
	}
	input.register(cmd)
	authorities.register(cmd)
	setup.register(cmd)
	return cmd
}

// judge wires a gate as the flags say and puts the question to it.
func judge(ctx context.Context, t terminal, images []string, input *inputFlags, authorities *authorityFlags, setup *setupFlags) ([]gate.Outcome, error) {
	requests, err := input.requests(t, images)
	if err != nil {
		return nil, err
	}
	engine, err := setup.gate(ctx, t, authorities)
	if err != nil {
		return nil, err
	}
	progress := newProgress(t, len(requests))
	defer progress.clear()
	return engine.DecideAll(ctx, requests, func(gate.Outcome) { progress.step() }), nil
}

// tell writes every output that was asked for, also when images are denied.
func (f *outputFlags) tell(t terminal, outcomes []gate.Outcome, reproduce func(report.Record, report.Image) string) error {
	for _, wanted := range f.formats {
		format, path, toFile := strings.Cut(wanted, "=")
		if err := f.write(t, outcomes, reproduce, format, path, toFile); err != nil {
			return err
		}
	}
	return exit(outcomes, f.requireMatch)
}

func (f *outputFlags) write(t terminal, outcomes []gate.Outcome, reproduce func(report.Record, report.Image) string, format, path string, toFile bool) (err error) {
	out := t.out
	if toFile {
		file, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("-o %s=%s: %w", format, path, err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		out = file
	}
	switch format {
	case "text":
		return report.Text(out, outcomes, report.TextOptions{Color: !toFile && t.color(), Verbose: f.verbose, Reproduce: reproduce})
	case "json":
		return report.JSON(out, outcomes)
	}
	return fmt.Errorf("-o %s: want text or json", format)
}

// exit returns the status that the outcomes call for.
func exit(outcomes []gate.Outcome, requireMatch bool) error {
	worst := exitAllowed
	for _, outcome := range outcomes {
		switch {
		case outcome.Answer == gate.Deny:
			return status(exitDenied)
		case requireMatch && unmatched(outcome):
			return status(exitDenied)
		case outcome.Answer == gate.Unable:
			worst = exitUnable
		}
	}
	if worst != exitAllowed {
		return status(worst)
	}
	return nil
}

func unmatched(outcome gate.Outcome) bool {
	for _, v := range outcome.Verdicts {
		if !v.Matched() {
			return true
		}
	}
	return false
}
