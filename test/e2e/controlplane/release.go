package controlplane

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/test/peers"
)

// The gateway's service account, as deploy/ names it.
const releaseNamespace, releaseAccount = "quaymaster", "quaymaster"

// tokenReview is what lets the gateway ask whose a token is.
const tokenReview = "quaymaster-tokenreview"

// AllowTokenReview applies what deploy/ holds for doors.api.tokenReview, and nothing
// else does.
func (c *ControlPlane) AllowTokenReview(ctx context.Context) error {
	checkout, err := peers.Checkout()
	if err != nil {
		return err
	}
	content, err := os.ReadFile(filepath.Join(checkout, "deploy", "tokenreview.yaml"))
	if err != nil {
		return err
	}
	return c.ApplyYAML(ctx, string(content))
}

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
	// The kinds of kustomize are no objects of the cluster, and what is for one door
	// alone is for who opens it.
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == "Deployment" || object.GetKind() == "Kustomization" || object.GetName() == tokenReview
	})
	if err := c.Apply(ctx, objects...); err != nil {
		return nil, fmt.Errorf("install the release: %w", err)
	}
	return c.ServiceAccount(ctx, releaseNamespace, releaseAccount)
}
