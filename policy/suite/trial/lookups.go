package trial

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/suite/cluster"
)

// lookups serve the look-ups of policies from the documents. What is not among them is
// indeterminate: a cluster may have it.
type lookups struct {
	*cluster.Cluster
	Advice
}

// answer serves the policies' look-ups from the documents.
func (r *Input) answer(options *engine.CompilerOptions) {
	files := lookups{cluster.New(slices.Concat(r.evaluated, r.kinds)), r.advice}
	files.Add(slices.Concat(r.Objects, r.Beside())...)
	options.ConfigMaps, options.Secrets = r.Known, engine.FileSecrets{Resources: r.Known}
	options.Resources, options.Caller = files, files
}

// Get implements cel.Resources.
func (l lookups) Get(ctx context.Context, of cel.ResourceRef) (map[string]any, error) {
	object, err := l.Cluster.Get(ctx, of)
	if err != nil {
		return nil, l.missing(of)
	}
	return object, nil
}

// List implements cel.Resources. A list counts as complete if a document is an object of the resource.
func (l lookups) List(ctx context.Context, of cel.ResourceRef, labels map[string]string) (map[string]any, error) {
	if !l.Knows(of.Group, of.Resource) {
		return nil, l.missing(of)
	}
	return l.Cluster.List(ctx, of, labels)
}

func (a Advice) missing(of cel.ResourceRef) error {
	return &cel.UnknownError{Gaps: []error{fmt.Errorf("%s: %s: %s", path.Join(of.Resource, of.Namespace, of.Name), a.Missing, a.Object)}}
}

// Post implements cel.Resources.
func (l lookups) Post(_ context.Context, of cel.ResourceRef, _ map[string]any) (map[string]any, error) {
	return nil, &cel.UnknownError{Gaps: []error{fmt.Errorf("%s cannot be made without a cluster", of.Resource)}}
}

// API implements rulecontext.Caller.
func (l lookups) API(ctx context.Context, call rulecontext.APICall) (any, error) {
	answer, err := l.Cluster.API(ctx, call)
	if err != nil {
		return nil, fmt.Errorf("%s: %s, or %s", l.Missing, l.Object, l.Value)
	}
	return answer, nil
}

// Service implements rulecontext.Caller.
func (l lookups) Service(ctx context.Context, call rulecontext.ServiceCall) (any, error) {
	return l.Advice.Service(ctx, call)
}

// Service refuses to call a service.
func (a Advice) Service(_ context.Context, call rulecontext.ServiceCall) (any, error) {
	return nil, fmt.Errorf("%s: services are called at admission alone: %s", call.URL, a.Value)
}
