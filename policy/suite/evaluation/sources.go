package evaluation

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/source"
)

// Sources implements source.Objects by the look-ups of expressions, with the caller's own rights.
type Sources struct{ Resources cel.Resources }

var _ source.Objects = Sources{}

// Source implements source.Objects.
func (s Sources) Source(ctx context.Context, of source.Ref) (map[string]any, error) {
	ref, err := s.resource(ctx, of)
	if err != nil {
		return nil, err
	}
	object, err := s.Resources.Get(ctx, ref)
	if _, isUnknown := errors.AsType[*cel.UnknownError](err); err != nil && !isUnknown {
		return nil, fmt.Errorf("%w: %w", source.ErrMissing, err)
	}
	return object, err
}

// EachSource implements source.Objects.
func (s Sources) EachSource(ctx context.Context, of source.Ref, do func(object map[string]any) error) error {
	by, err := labels.Parse(of.Labels)
	if err != nil {
		return err
	}
	ref, err := s.resource(ctx, of)
	if err != nil {
		return err
	}
	list, err := s.Resources.List(ctx, ref, nil)
	if err != nil {
		return err
	}
	items, _ := list["items"].([]any)
	for _, item := range items {
		object, _ := item.(map[string]any)
		if !by.Matches(labelsOf(object)) {
			continue
		}
		if err := do(object); err != nil {
			return err
		}
	}
	return nil
}

func labelsOf(object map[string]any) labels.Set {
	metadata, _ := object["metadata"].(map[string]any)
	written, _ := metadata["labels"].(map[string]any)
	set := labels.Set{}
	for key, value := range written {
		set[key], _ = value.(string)
	}
	return set
}

// resource names the objects as expressions do.
func (s Sources) resource(ctx context.Context, of source.Ref) (cel.ResourceRef, error) {
	ref := cel.ResourceRef{Resource: of.Resource, Namespace: of.Namespace, Name: of.Name}
	if s.Resources == nil {
		return ref, errors.New("objects of the cluster cannot be read here")
	}
	if of.Resource != "" {
		kind := schema.FromAPIVersionAndKind(of.APIVersion, "")
		ref.Group, ref.Version = kind.Group, kind.Version
		return ref, nil
	}
	var err error
	ref.Group, ref.Version, ref.Resource, err = s.Resources.Kind(ctx, of.APIVersion, of.Kind)
	return ref, err
}
