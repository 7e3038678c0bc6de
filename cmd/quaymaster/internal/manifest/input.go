package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/workload"
)

// Flags select the images.
type Flags struct {
	Files     []string
	Payloads  []string
	Namespace string
	// Definitions are kinds of custom resources, beside those that the files define.
	Definitions []constraint.Resource
	// Evaluated are the custom resource definitions in the files; Requests sets them.
	Evaluated []workload.Object
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
	kinds := f.Definitions
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
	for _, name := range f.Files {
		objects, err := Read(name, t.In)
		if errors.Is(err, workload.ErrNoKind) {
			err = fmt.Errorf("%w; what is none is judged with --payload FILE", err)
		}
		if err == nil {
			_, err = engine.CheckDefinitions(objects, kinds)
		}
		if err != nil {
			return nil, fmt.Errorf("-f %s: %w", name, err)
		}
		for _, object := range objects {
			requests = append(requests, gate.Request{Object: object})
			if _, defines := engine.Defined(object); defines {
				f.Evaluated = append(f.Evaluated, object)
			}
		}
		kinds = append(engine.Definitions(objects), kinds...)
	}
	if err := f.checkKinds(requests); err != nil {
		return nil, fmt.Errorf("-f: %w", err)
	}
	for i := range requests {
		f.place(&requests[i], kinds)
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

// place gives an object a namespace, and the resource of its kind where one of f.Definitions names
// it: the name in a definition next to the object is its author's.
func (f *Flags) place(request *gate.Request, kinds []constraint.Resource) {
	o, s := request.Object, &request.Subject
	defines := func(r constraint.Resource) bool { return r.Group == o.Group() && r.Kind == o.Kind() }
	i := slices.IndexFunc(kinds, defines)
	if o.Namespace() == "" && s.Namespace == "" && (i < 0 || !kinds[i].Cluster) {
		s.Namespace = f.Namespace
	}
	if i := slices.IndexFunc(f.Definitions, defines); i >= 0 {
		s.Request = policy.RequestOf(map[string]any{"resource": map[string]any{"group": o.Group(), "version": o.Version(), "resource": f.Definitions[i].Name}})
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

func (f *Flags) checkKinds(requests []gate.Request) error {
	var objects []workload.Object
	for _, r := range requests {
		if !r.Object.IsZero() {
			objects = append(objects, r.Object)
		}
	}
	return CheckKinds(objects, f.Definitions, f.Namespace != "" && f.Namespace != "default")
}
