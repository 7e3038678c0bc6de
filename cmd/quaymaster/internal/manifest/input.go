package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
	"github.com/quaymaster/quaymaster/workload"
)

// Flags select the images.
type Flags struct {
	Files     []string
	Payloads  []string
	Namespace string
	// Definitions are kinds of custom resources, beside those that the files define.
	Definitions []constraint.Resource
	// Evaluated are the kinds that custom resource definitions in the files define; Requests sets them.
	Evaluated []constraint.Resource
}

// Register adds the flags to a command.
func (f *Flags) Register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&f.Files, "filename", "f", nil, "manifest `file`, folder, or - for standard input; the workloads' images are verified")
	cmd.Flags().StringArrayVar(&f.Payloads, "payload", nil, "JSON or YAML `file`, or -, for policies with evaluation.mode JSON; may be repeated")
	cmd.Flags().StringVarP(&f.Namespace, "namespace", "n", "default", "`namespace` of images and of manifests without one")
}

// Requests reads the images of the arguments and files.
func (f *Flags) Requests(t command.Terminal, images []string) ([]gate.Request, error) {
	if command.Inputs(f.Files, f.Payloads) > 1 {
		return nil, errors.New("standard input can be read once: give - to -f or to --payload, once")
	}
	var requests []gate.Request
	for _, written := range images {
		if _, err := image.Parse(written); err != nil {
			return nil, err
		}
		request, err := gate.ForImage(written, f.Namespace)
		if err != nil {
			return nil, err
		}
		requests = append(requests, request)
	}
	objects, err := f.objects(t)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		request := gate.Request{Object: object}
		f.resource(&request)
		requests = append(requests, request)
	}
	documents, err := f.documents(t)
	if err != nil {
		return nil, err
	}
	for _, document := range documents {
		requests = append(requests, gate.ForDocument(document))
	}
	if given := slices.Concat(f.Files, f.Payloads); len(requests) == 0 && len(given) > 0 {
		return nil, fmt.Errorf("%s: no objects in it", strings.Join(given, ", "))
	}
	if len(requests) == 0 {
		return nil, errors.New("nothing to verify: name an image, manifests with -f FILE, or documents with --payload FILE")
	}
	return requests, nil
}

// objects reads the objects of the files, in their namespaces.
func (f *Flags) objects(t command.Terminal) ([]workload.Object, error) {
	var all []workload.Object
	for _, name := range f.Files {
		objects, err := Read(name, t.In)
		if errors.Is(err, workload.ErrNoKind) {
			err = fmt.Errorf("%w; what is none is judged with --payload FILE", err)
		}
		if err != nil {
			return nil, fmt.Errorf("-f %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	_, err := constraint.CheckDefinitions(all, f.Definitions)
	if err := errors.Join(err, evaluation.CheckKinds(all, f.Definitions)); err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	f.Evaluated = constraint.Definitions(all)
	return evaluation.InNamespace(all, f.Namespace, slices.Concat(f.Evaluated, f.Definitions, constraint.Known())), nil
}

// Scopes are those of the objects that Requests returned.
func (f *Flags) Scopes(t command.Terminal) evaluation.Scopes {
	scopes := evaluation.NewScopes(f.Evaluated, f.Definitions, f.Namespace)
	scopes.Warn = t.Warn
	return scopes
}

// resource sets the resource of the object's kind where one of f.Definitions names it: the name in a
// definition next to the object is its author's.
func (f *Flags) resource(request *gate.Request) {
	o := request.Object
	if i := evaluation.IndexOfKind(f.Definitions, o); i >= 0 {
		resource := map[string]any{"group": o.Group(), "version": o.Version(), "resource": f.Definitions[i].Name}
		request.Subject.Request = policy.RequestOf(map[string]any{"resource": resource})
	}
}

// documents reads the files of --payload. A member called kind does not make a document a
// Kubernetes object.
func (f *Flags) documents(t command.Terminal) ([]workload.Object, error) {
	var all []workload.Object
	for _, name := range f.Payloads {
		read, err := ReadPayload(name, t.In)
		if err != nil {
			return nil, fmt.Errorf("--payload %s: %w", name, err)
		}
		all = append(all, read...)
	}
	return all, nil
}
