package apply

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/suite/cluster"
	"github.com/quaymaster/quaymaster/policy/suite/evaluation"
)

// lookups serve the look-ups of policies from the objects of the files. What no file has is
// indeterminate: a cluster may have it.
type lookups struct{ *cluster.Cluster }

// answer serves the policies' look-ups from the files.
func (r *read) answer(options *engine.CompilerOptions) {
	files := lookups{cluster.New(slices.Concat(r.evaluated, r.kinds))}
	files.Add(slices.Concat(r.objects, evaluation.InNamespace(r.beside, "default", r.kinds))...)
	options.ConfigMaps, options.Secrets = r.known, engine.FileSecrets{Resources: r.known}
	options.Resources, options.Caller = files, files
}

// Get implements cel.Resources.
func (l lookups) Get(ctx context.Context, of cel.ResourceRef) (map[string]any, error) {
	object, err := l.Cluster.Get(ctx, of)
	if err != nil {
		return nil, missing(of)
	}
	return object, nil
}

// List implements cel.Resources. A list counts as complete if the files have an object of the resource.
func (l lookups) List(ctx context.Context, of cel.ResourceRef, labels map[string]string) (map[string]any, error) {
	if !l.Knows(of.Group, of.Resource) {
		return nil, missing(of)
	}
	return l.Cluster.List(ctx, of, labels)
}

func missing(of cel.ResourceRef) error {
	return &cel.UnknownError{Gaps: []error{fmt.Errorf("%s: no file has it: give it with -r FILE", path.Join(of.Resource, of.Namespace, of.Name))}}
}

// Post implements cel.Resources.
func (l lookups) Post(_ context.Context, of cel.ResourceRef, _ map[string]any) (map[string]any, error) {
	return nil, &cel.UnknownError{Gaps: []error{fmt.Errorf("%s cannot be made without a cluster", of.Resource)}}
}

// API implements rulecontext.Caller.
func (l lookups) API(ctx context.Context, call rulecontext.APICall) (any, error) {
	answer, err := l.Cluster.API(ctx, call)
	if err != nil {
		return nil, errors.New("no file has it: give its objects with -r FILE, or the value that the rule reads with --set or --values-file")
	}
	return answer, nil
}

// Service implements rulecontext.Caller.
func (lookups) Service(_ context.Context, call rulecontext.ServiceCall) (any, error) {
	return nil, fmt.Errorf("%s: services are not called from the command line: give the value with --set or --values-file", call.URL)
}
