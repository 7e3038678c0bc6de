package cleanup

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	core "github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/background/cleanup"
	"github.com/quaymaster/quaymaster/gateway/background"
	"github.com/quaymaster/quaymaster/policy"
)

// deleteTimeout bounds one deletion: an API server gives webhooks 30 s at most.
const deleteTimeout = 35 * time.Second

// apiServer implements cleanup.Cluster.
type apiServer struct {
	background.Reader
	client dynamic.Interface
}

// Each lists objects in pages.
func (c *apiServer) Each(ctx context.Context, kind core.Kind, namespace, query string, do func(object map[string]any) error) error {
	return explained(c.Reader.Each(ctx, kind, namespace, query, do), "list", kind)
}

// Get returns one object.
func (c *apiServer) Get(ctx context.Context, kind core.Kind, namespace, name string) (map[string]any, error) {
	object, err := c.Reader.Get(ctx, kind, namespace, name)
	return object, explained(err, "get", kind)
}

// Delete deletes an object as it was read.
func (c *apiServer) Delete(ctx context.Context, kind core.Kind, object map[string]any, how policy.Propagation) error {
	at := unstructured.Unstructured{Object: object}
	uid, version := at.GetUID(), at.GetResourceVersion()
	if uid == "" || version == "" {
		return errors.New("delete an object: it has no UID or version")
	}
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}}
	if how != "" {
		way := metav1.DeletionPropagation(how)
		options.PropagationPolicy = &way
	}
	ctx, cancel := context.WithTimeout(ctx, deleteTimeout)
	defer cancel()
	of := c.client.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: kind.Resource})
	var err error
	if at.GetNamespace() == "" {
		err = of.Delete(ctx, at.GetName(), options)
	} else {
		err = of.Namespace(at.GetNamespace()).Delete(ctx, at.GetName(), options)
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", core.ErrNotFound, err)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", core.ErrConflict, err)
	}
	err = explained(err, "delete", kind)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err) {
		return fmt.Errorf("%w: %w", core.ErrRefused, err)
	}
	return err
}

// explained adds the remedy to a refusal of the API server.
func explained(err error, verb string, kind core.Kind) error {
	refused, is := errors.AsType[*apierrors.StatusError](err)
	if !is || !apierrors.IsForbidden(refused) {
		return err
	}
	return fmt.Errorf("%w; grant %s on %s by a ClusterRole with the label %s: see docs/cleanup.md", refused, verb, kind.Resource, cleanup.Label)
}
