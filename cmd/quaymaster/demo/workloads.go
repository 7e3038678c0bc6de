package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/quaymaster/quaymaster/gate"
)

// createPods sends the creation of one Pod for each image of the scenes, so that each page of the
// dashboard has content, and prints how many of them the gateway admitted.
func createPods(ctx context.Context, out io.Writer, client *http.Client, address string, scenes []scene) error {
	admitted := 0
	for i, s := range scenes {
		allowed, err := createPod(ctx, client, address, i, s.image.Name)
		if err != nil {
			return err
		}
		if want := s.want == gate.Allow; allowed != want {
			return fmt.Errorf("a Pod of %s: allowed: %t, and %t was expected", s.image.Name, allowed, want)
		}
		if allowed {
			admitted++
		}
	}
	fmt.Fprintf(out, "\nOne Pod of each image above is created, too: %d admitted, %d refused. The dashboard shows them with\ntheir signers, the override and the mirror.\n",
		admitted, len(scenes)-admitted)
	return nil
}

// createPod sends one Pod to both endpoints, as an API server does: to the validating one with the
// pinned image.
func createPod(ctx context.Context, client *http.Client, address string, i int, image string) (bool, error) {
	for _, endpoint := range []string{"/mutate", "/validate"} {
		body, err := json.Marshal(podReview(i, image))
		if err != nil {
			return false, err
		}
		review, err := post(ctx, client, address, endpoint, body)
		if err != nil || !review.Response.Allowed {
			return false, err
		}
		operations, err := review.operations()
		if err != nil {
			return false, err
		}
		for _, op := range operations {
			if pinned, ok := op.Value.(string); ok && op.Path == "/spec/containers/0/image" {
				image = pinned
			}
		}
	}
	return true, nil
}

// podReview is an AdmissionReview as an API server (1.36) sends it, without the fields that no
// policy of the demo reads.
func podReview(i int, image string) map[string]any {
	name, _, _ := strings.Cut(path.Base(image), ":")
	name = fmt.Sprintf("%s-%d", name, i) // the same image is in two registries
	kind := map[string]any{"group": "", "version": "v1", "kind": "Pod"}
	resource := map[string]any{"group": "", "version": "v1", "resource": "pods"}
	return map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"request": map[string]any{
			"uid":  fmt.Sprintf("5b2b6d0e-0100-4d1c-9a55-%012d", i),
			"kind": kind, "requestKind": kind, "resource": resource, "requestResource": resource,
			"name": name, "namespace": "shop", "operation": "CREATE", "dryRun": false,
			"userInfo": map[string]any{"username": "developer", "groups": []string{"developers", "system:authenticated"}},
			"object": map[string]any{
				"apiVersion": "v1", "kind": "Pod",
				"metadata": map[string]any{"name": name, "namespace": "shop", "uid": fmt.Sprintf("7c8f7f0e-0100-4a86-9a53-%012d", i)},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
			},
		},
	}
}
