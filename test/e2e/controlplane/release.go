package controlplane

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/test/peers"
)

// The gateway's service account, as deploy/ names it.
const releaseNamespace, releaseAccount = "quaymaster", "quaymaster"

// Install applies what the product's deploy folder holds but for its pods, which
// nothing here would run, and returns the identity of the gateway: its service
// account, which may do what the manifests say and no more.
func (c *ControlPlane) Install(ctx context.Context) (*rest.Config, error) {
	checkout, err := peers.Checkout()
	if err != nil {
		return nil, err
	}
	objects, err := ReadManifests(filepath.Join(checkout, "deploy"))
	if err != nil {
		return nil, fmt.Errorf("install the release: %w", err)
	}
	// The kinds of kustomize are no objects of the cluster.
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == "Deployment" || object.GetKind() == "Kustomization"
	})
	if err := c.Apply(ctx, objects...); err != nil {
		return nil, fmt.Errorf("install the release: %w", err)
	}
	return c.ServiceAccount(ctx, releaseNamespace, releaseAccount)
}
