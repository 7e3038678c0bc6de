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

// AllowTokenReview applies what deploy/ holds for endpoints.api.tokenReview, and nothing
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

// Install applies the manifest of the release, and the definitions, but for its pods, which
// nothing here would run, and returns the identity of the gateway: its service account, with
// the permissions of the manifests and no more.
func (c *ControlPlane) Install(ctx context.Context) (*rest.Config, error) {
	checkout, err := peers.Checkout()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	// The definitions of reports are for tests of reports.
	files, err := filepath.Glob(filepath.Join(checkout, "deploy", "crds", "*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range append(files, filepath.Join(checkout, "deploy", "install.yaml")) {
		more, err := ReadManifests(file)
		if err != nil {
			return nil, fmt.Errorf("install the release: %w", err)
		}
		objects = append(objects, more...)
	}
	objects = slices.DeleteFunc(objects, func(object *unstructured.Unstructured) bool { return object.GetKind() == "Deployment" })
	if err := c.Apply(ctx, objects...); err != nil {
		return nil, fmt.Errorf("install the release: %w", err)
	}
	return c.ServiceAccount(ctx, releaseNamespace, releaseAccount)
}
