// Package mirror is the command quaymaster mirror, which shows the mirror targets of images.
package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/output"
	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/setup"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/image/mirror"
	"github.com/quaymaster/quaymaster/report"
	"github.com/quaymaster/quaymaster/workload"
)

// mirrorFlags select the mapping and the workload.
type mirrorFlags struct {
	setup          setup.Flags
	namespace      string
	labels         []string
	check, offline bool
	verbose        bool
	output         string
}

// New is the command.
func New(t command.Terminal) *cobra.Command {
	var f mirrorFlags
	cmd := &cobra.Command{
		Use:   "mirror IMAGE... --mirrors FILE | --bundle FILE | --from-cluster | --check --mirrors FILE",
		Short: "Show the mirror targets of images",
		Long: `Mirror shows for each image the matching mapping, the targets in order with their
responses, the chosen target with the reason, and the repositories of evidence.
For an image inside a target it shows the source names that it is evaluated by.
It changes nothing.

Without --policy, the targets resolve the reference to a digest, which is not
verified. With --policy, the image is evaluated as that of a Pod in the namespace
of -n, and redirected only if the verdict and the mapping allow it. --bundle and
--from-cluster provide both the mapping and the policies.

With --check no request is sent: the mapping is checked for loops, for shadowed
entries, and for targets that are their own source. A prefix that no reference can
have does not load at all.

Exit status: 0 if each image has a target or may keep its source, 1 if one is
denied or --check has a finding, 3 if a request failed, 2 for wrong use.`,
		Example: `  quaymaster mirror nginx:1.27 --mirrors mirrors.yaml
  quaymaster mirror nginx:1.27 --mirrors mirrors.yaml --policy policies/ -n shop
  quaymaster mirror --check --mirrors mirrors.yaml`,
		RunE: func(cmd *cobra.Command, images []string) error {
			mirrors, err := f.read(images)
			if err != nil {
				return err
			}
			if f.check {
				return f.lint(t, mirrors)
			}
			return f.show(cmd, t, mirrors, images)
		},
	}
	flags := cmd.Flags()
	f.setup.RegisterOnline(cmd)
	f.setup.Bundle.Register(cmd)
	f.setup.Cluster.RegisterOptional(cmd)
	flags.StringVarP(&f.namespace, "namespace", "n", "default", "`namespace` of the Pod")
	flags.StringArrayVarP(&f.labels, "label", "l", nil, "`key=value` label of the Pod; may be repeated")
	flags.BoolVar(&f.check, "check", false, "check the mapping for errors, without requests")
	flags.BoolVar(&f.offline, "offline", false, "show the mapping alone, without requests")
	output.RegisterDocument(cmd, "output", &f.output)
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "show durations too")
	return cmd
}

// read refuses conflicting flags, and reads the mapping.
func (f *mirrorFlags) read(images []string) (*mirror.Set, error) {
	if err := output.CheckDocument(f.output); err != nil {
		return nil, err
	}
	switch {
	case len(f.setup.Mirrors) == 0 && !f.elsewhere():
		return nil, errors.New("no mapping given: set --mirrors FILE, --bundle FILE or --from-cluster")
	case f.check && len(images) > 0:
		return nil, errors.New("--check is about the mapping as a whole, and takes no image")
	case f.check && len(f.setup.Policies) > 0, f.offline && len(f.setup.Policies) > 0:
		return nil, errors.New("--policy asks registries, and --check and --offline send no request")
	case f.check && f.elsewhere(), f.offline && f.elsewhere():
		return nil, errors.New("--bundle and --from-cluster bring policies, which ask registries, and --check and --offline send no request: give --mirrors")
	case !f.check && len(images) == 0:
		return nil, errors.New("nothing to show: name an image, or --check")
	}
	return setup.LoadMirrors(f.setup.Mirrors)
}

// elsewhere reports whether mapping and policies are in a bundle or a cluster.
func (f *mirrorFlags) elsewhere() bool {
	return f.setup.Bundle.File != "" || f.setup.Cluster.Use
}

// lint writes the errors of the mapping.
func (f *mirrorFlags) lint(t command.Terminal, mirrors *mirror.Set) error {
	found := report.Findings{APIVersion: report.APIVersion, Kind: "FindingList", Items: []report.Finding{}}
	for _, one := range mirrors.Check() {
		found.Items = append(found.Items, report.Finding{Where: one.Where, Message: one.Message, Hint: one.Hint})
	}
	if err := f.print(t, found); err != nil {
		return err
	}
	if len(found.Items) > 0 {
		return command.Status(command.ExitDenied)
	}
	return nil
}

// show writes the result for each image.
func (f *mirrorFlags) show(cmd *cobra.Command, t command.Terminal, mirrors *mirror.Set, images []string) error {
	refs, requests, err := f.requests(images)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), max(f.setup.Timeout, 0))
	defer cancel()
	reporter, err := f.look(ctx, t, mirrors, requests)
	if err != nil {
		return err
	}
	list := report.Redirections{APIVersion: report.APIVersion, Kind: "RedirectionList", Items: make([]report.Redirection, len(images))}
	end := output.Wait(t, "asking the targets of "+command.Count(len(images), "image"))
	for i, ref := range refs {
		list.Items[i] = reporter.Report(ctx, ref, requests[i], i)
	}
	end()
	if err := f.print(t, list); err != nil {
		return err
	}
	has := func(result report.Redirect) bool {
		return slices.ContainsFunc(list.Items, func(r report.Redirection) bool { return r.Result == result })
	}
	switch {
	case has(report.DeniedThere):
		return command.Status(command.ExitDenied)
	case has(report.ErrorThere):
		return command.Status(command.ExitError)
	}
	return nil
}

// writer is a document with its output formats.
type writer interface {
	Text(w io.Writer, options report.TreeOptions) error
	JSON(w io.Writer) error
}

func (f *mirrorFlags) print(t command.Terminal, what writer) error {
	if f.output != output.Text {
		return output.WriteAs(t.Out, f.output, what.JSON)
	}
	return what.Text(t.Out, report.TreeOptions{Color: t.Color(), Verbose: f.verbose})
}

// requests makes a Pod with the labels for each image.
func (f *mirrorFlags) requests(images []string) ([]image.Ref, []gate.Request, error) {
	labels := map[string]any{}
	for _, label := range f.labels {
		key, value, ok := strings.Cut(label, "=")
		if !ok || key == "" {
			return nil, nil, fmt.Errorf("--label %s: want key=value", label)
		}
		labels[key] = value
	}
	refs, requests := make([]image.Ref, len(images)), make([]gate.Request, len(images))
	for i, written := range images {
		var err error
		refs[i], err = image.Parse(written)
		if err != nil {
			return nil, nil, err
		}
		pod, err := json.Marshal(map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": "image", "namespace": f.namespace, "labels": labels},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "image", "image": written}}},
		})
		if err != nil {
			return nil, nil, err
		}
		object, err := workload.Parse(pod)
		if err != nil {
			return nil, nil, err
		}
		requests[i] = gate.Request{Object: object}
	}
	return refs, requests, nil
}
