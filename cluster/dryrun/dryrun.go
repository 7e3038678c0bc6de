// Package dryrun makes dry runs: it has the API server make an object of a manifest, with its defaults
// and admission plugins, and store nothing (Kubernetes API, dryRun=All).
package dryrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/quaymaster/quaymaster/policy"
)

// Runner makes dry runs with the permissions of its client. It is safe for concurrent use.
type Runner struct {
	// Dynamic is the client; required.
	Dynamic dynamic.Interface
	// Own is the gateway's namespace, in which no dry run is made; empty for none.
	Own string
}

// DryRunCreate returns what the API server would make of a new object, as decoded JSON with float64.
// Namespace is empty for a cluster-scoped object. The client must be permitted to create such objects.
// A resource of a subresource, and a response without the object's kind, are errors.
func (r Runner) DryRunCreate(ctx context.Context, resource policy.APIResource, namespace string, object map[string]any) (map[string]any, error) {
	what := fmt.Sprintf("dry run of %s in namespace %q", resource.Name, namespace)
	if namespace != "" && namespace == r.Own {
		return nil, fmt.Errorf("%s: it is the gateway's own; name another one in the policy (dryRun.namespace)", what)
	}
	at := r.Dynamic.Resource(schema.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Name})
	var client dynamic.ResourceInterface = at
	if namespace != "" {
		client = at.Namespace(namespace)
	}
	made, err := client.Create(ctx, &unstructured.Unstructured{Object: object}, meta.CreateOptions{DryRun: []string{meta.DryRunAll}})
	switch {
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%s: grant the gateway's service account create on it: %w", what, err)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	text, err := made.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if out["kind"] != object["kind"] {
		return nil, errors.New(what + ": the API server made an object of another kind")
	}
	return out, nil
}
