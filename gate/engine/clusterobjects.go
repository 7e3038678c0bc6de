package engine

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// ClusterObjects implements resource.Get and related functions with the caller's own rights in a
// cluster.
type ClusterObjects struct{ Objects *cluster.Objects }

var _ cel.Resources = ClusterObjects{}

// Get implements cel.Resources.
func (c ClusterObjects) Get(ctx context.Context, of cel.ResourceRef) (map[string]any, error) {
	object, err := c.Objects.Get(ctx, cluster.Place(of))
	return object, looked(err)
}

// List implements cel.Resources.
func (c ClusterObjects) List(ctx context.Context, of cel.ResourceRef, labels map[string]string) (map[string]any, error) {
	list, err := c.Objects.List(ctx, cluster.Place(of), labels)
	return list, looked(err)
}

// Post implements cel.Resources.
func (c ClusterObjects) Post(ctx context.Context, of cel.ResourceRef, object map[string]any) (map[string]any, error) {
	answer, err := c.Objects.Review(ctx, cluster.Place(of), object)
	return answer, looked(err)
}

// Kind implements cel.Resources.
func (c ClusterObjects) Kind(ctx context.Context, apiVersion, kind string) (group, version, resource string, err error) {
	found, err := c.Objects.Kind(ctx, schema.FromAPIVersionAndKind(apiVersion, kind))
	return found.Group, found.Version, found.Resource, looked(err)
}

// Namespaced reports whether the objects of a kind are in namespaces.
func (c ClusterObjects) Namespaced(ctx context.Context, apiVersion, kind string) (bool, error) {
	is, err := c.Objects.Namespaced(ctx, schema.FromAPIVersionAndKind(apiVersion, kind))
	return is, looked(err)
}

// looked distinguishes an indeterminate result from an answer: not found is an answer.
func looked(err error) error {
	known, ok := errors.AsType[*cluster.Error](err)
	switch {
	case !ok:
		return err
	case errors.Is(known, cluster.ErrNotFound):
		return absent{err}
	}
	return &cel.UnknownError{Gaps: []error{known}}
}

// absent is the error about an object that is not there.
type absent struct{ error }

// Is reports whether a target is cel.ErrNotFound.
func (absent) Is(target error) bool { return target == cel.ErrNotFound }

// Unwrap returns the error of the look-up.
func (a absent) Unwrap() error { return a.error }
