package dryrun_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/quaymaster/quaymaster/cluster/dryrun"
	"github.com/quaymaster/quaymaster/policy"
)

// TestDryRunCreate: whatever happens, nothing is created.
func TestDryRunCreate(t *testing.T) {
	deployments := policy.APIResource{Group: "apps", Version: "v1", Name: "deployments"}
	namespaces := policy.APIResource{Version: "v1", Name: "namespaces"}
	for _, c := range []struct {
		reason, namespace string
		resource          policy.APIResource
		kind              string
		status            int
		wantPath, wantErr string
	}{
		{"in a namespace", "dry", deployments, "Deployment", http.StatusCreated, "/apis/apps/v1/namespaces/dry/deployments", ""},
		{"of the cluster", "", namespaces, "Namespace", http.StatusCreated, "/api/v1/namespaces", ""},
		{"without the permission", "dry", deployments, "Deployment", http.StatusForbidden, "/apis/apps/v1/namespaces/dry/deployments", "grant the gateway's service account create"},
		{"while the server fails", "dry", deployments, "Deployment", http.StatusInternalServerError, "/apis/apps/v1/namespaces/dry/deployments", "dry run of deployments"},
		{"of another kind", "dry", deployments, "Scale", http.StatusCreated, "/apis/apps/v1/namespaces/dry/deployments", "another kind"},
		{"in the gateway's namespace", "gateway", deployments, "Deployment", http.StatusCreated, "", "gateway's own"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			path := ""
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				path = r.URL.Path
				if r.Method != http.MethodPost || r.URL.RawQuery != "dryRun=All" {
					t.Errorf("%s with the query %q would create an object", r.Method, r.URL.RawQuery)
				}
				body, err := io.ReadAll(r.Body)
				if err != nil {
					t.Error(err)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(c.status)
				var object map[string]any
				if err := json.Unmarshal(body, &object); err != nil {
					t.Error(err)
				}
				object["kind"] = c.kind
				if err := json.NewEncoder(w).Encode(object); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			runner := dryrun.Runner{Dynamic: client, Own: "gateway"}
			object := map[string]any{"apiVersion": "v1", "kind": "Deployment", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"replicas": 3.0}}
			if c.resource == namespaces {
				object["kind"] = "Namespace"
			}
			made, err := runner.DryRunCreate(t.Context(), c.resource, c.namespace, object)
			if path != c.wantPath {
				t.Errorf("the request was for %q, want %q", path, c.wantPath)
			}
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Errorf("%v, want an error with %q", err, c.wantErr)
				}
				return
			}
			if spec, ok := made["spec"].(map[string]any); err != nil || !ok || spec["replicas"] != 3.0 {
				t.Errorf("%v, %v", made, err)
			}
		})
	}
}
