package background

import (
	"context"

	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/background"
	"github.com/quaymaster/quaymaster/policy"
)

// Reader reads the objects of the cluster.
type Reader interface {
	// Served, Get and Each are as in background.Cluster.
	Served(ctx context.Context, target policy.Target) ([]background.Kind, error)
	Get(ctx context.Context, kind background.Kind, namespace, name string) (map[string]any, error)
	Each(ctx context.Context, kind background.Kind, namespace, query string, do func(object map[string]any) error) error
}

// NewReader returns a Reader with a client's rate limit.
func NewReader(client dynamic.Interface, kinds Kinds) Reader {
	return &apiServer{client: client, kinds: kinds}
}

// ImagesOf finds the images of an object. An unreadable object is an error.
func ImagesOf() background.Images { return objectImages{} }
