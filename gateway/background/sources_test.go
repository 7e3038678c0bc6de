package background

import (
	"net/http"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/source"
)

// TestSourcesAreConfined: a source is listed by its name, and the gateway's own Secrets are not read.
func TestSourcesAreConfined(t *testing.T) {
	var requests []string
	c := newAPIServer(t, func(w http.ResponseWriter, r *http.Request, _ string) {
		requests = append(requests, r.Method+" "+r.URL.Path+" "+r.URL.Query().Get("fieldSelector"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": []}`))
	})
	c.own = "quaymaster"
	for _, row := range []struct {
		reason string
		of     source.Ref
		err    string
	}{
		{"one that does not exist", source.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}, "does not exist"},
		{"by its resource", source.Ref{APIVersion: "v1", Resource: "configmaps", Namespace: "a", Name: "b"}, "does not exist"},
		{"a Secret of the gateway", source.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "quaymaster", Name: "b"}, "the gateway's own"},
		{"a Secret of the gateway, by its resource", source.Ref{APIVersion: "v1", Resource: "secrets", Namespace: "quaymaster", Name: "b"}, "the gateway's own"},
		{"a kind that is not served", source.Ref{APIVersion: "v1", Kind: "Widget", Namespace: "a", Name: "b"}, "serves no such kind"},
		{"a resource that is not served", source.Ref{APIVersion: "v1", Resource: "widgets", Namespace: "a", Name: "b"}, "serves no such kind"},
		{"no namespace", source.Ref{APIVersion: "v1", Kind: "ConfigMap", Name: "b"}, "the rule names none"},
	} {
		if _, err := c.Source(t.Context(), row.of); err == nil || !strings.Contains(err.Error(), row.err) {
			t.Errorf("%s: %v, want %q", row.reason, err, row.err)
		}
	}
	if len(requests) != 2 || requests[0] != "GET /api/v1/namespaces/a/configmaps metadata.name=b" {
		t.Errorf("%q", requests)
	}
}
