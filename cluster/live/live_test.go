package live

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/cluster"
	"github.com/quaymaster/quaymaster/policy"
)

// serve is an API server with two kinds and one pod.
func serve(t *testing.T) *cluster.Client {
	t.Helper()
	responses := map[string]string{
		"/api":  `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`,
		"/api/v1": `{"kind": "APIResourceList", "groupVersion": "v1", "resources": [
			{"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["list"]},
			{"name": "pods/log", "kind": "Pod", "namespaced": true, "verbs": ["get"]},
			{"name": "secrets", "kind": "Secret", "namespaced": true, "verbs": ["list"]},
			{"name": "nodes", "kind": "Node", "namespaced": false, "verbs": ["list"]}]}`,
		"/api/v1/namespaces/shop/pods": `{"kind": "PodList", "apiVersion": "v1", "items": [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"}}]}`,
		"/api/v1/namespaces/shop":      `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "shop", "labels": {"team": "web"}}}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := responses[r.URL.Path]
		if !ok {
			t.Errorf("unexpected request: %s", r.URL.Path)
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: u, user: {}}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", server.URL)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := cluster.NewClient(cluster.ClientOptions{Kubeconfig: path, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestMatching: only the kinds that policies match are listed, in the namespace; nodes are in
// none.
func TestMatching(t *testing.T) {
	c, err := Open(serve(t), "shop")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := c.Matching(t.Context(), []policy.Target{{Group: "", Kind: "Pod"}, {Group: "", Kind: "Node"}})
	if err != nil || len(objects) != 1 || objects[0].Name() != "web" {
		t.Errorf("%v, %v", objects, err)
	}
	if labels, ok := c.NamespaceLabels("shop"); !ok || labels["team"] != "web" {
		t.Errorf("labels %v, %t", labels, ok)
	}
	if found := c.Named("*", "nodes"); len(found) != 1 || !found[0].Cluster || found[0].Kind != "Node" {
		t.Errorf("nodes: %v", found)
	}
	if found := c.Named("*", "pods/log"); found != nil {
		t.Errorf("a subresource: %v", found)
	}
}
