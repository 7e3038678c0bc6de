package endpoints

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/quaymaster/quaymaster/webhook"
	"github.com/quaymaster/quaymaster/webhook/configuration"
)

// TestServedCallers: a client certificate is required where the configuration names it. Internal
// endpoints authenticate their callers themselves.
func TestServedCallers(t *testing.T) {
	callers := new(webhook.Callers)
	for _, row := range []struct {
		reason   string
		callers  *webhook.Callers
		at       []string
		required map[string]bool
	}{
		{"without callers", nil, nil, nil},
		{"without callers, at one path", nil, []string{"/mutate"}, nil},
		{"at all paths", callers, nil, map[string]bool{"/mutate": true, configuration.ProbePath: true}},
		{"at one path", callers, []string{"/mutate"}, map[string]bool{"/mutate": true}},
		{"an internal path", callers, []string{"/mutate", "/peers"}, map[string]bool{"/mutate": true}},
	} {
		served := NewSet([]string{"/mutate", configuration.ProbePath}, "/peers").Served(row.callers, row.at)
		if len(served) != 3 {
			t.Errorf("%s: %d endpoints", row.reason, len(served))
		}
		for path, endpoint := range served {
			if (endpoint.Callers == callers) != row.required[path] || !row.required[path] && endpoint.Callers != nil {
				t.Errorf("%s: %s requires a client certificate: %t", row.reason, path, endpoint.Callers != nil)
			}
			if endpoint.Below != (path == configuration.ProbePath) {
				t.Errorf("%s: %s serves paths below: %t", row.reason, path, endpoint.Below)
			}
		}
	}
	if served := (*Set)(nil).Served(callers, nil); served != nil {
		t.Errorf("without the role admission: %v", served)
	}
}

// TestActivate: until an endpoint is active, the API server applies the failure policy.
func TestActivate(t *testing.T) {
	set := NewSet([]string{"/mutate", "/validate"}, "/peers")
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	if err := set.Activate("/mutate", handler); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/mutate": http.StatusNoContent, "/validate": http.StatusServiceUnavailable, "/peers": http.StatusServiceUnavailable} {
		response := httptest.NewRecorder()
		set.Served(nil, nil)[path].Handler.ServeHTTP(response, httptest.NewRequest(http.MethodPost, path, nil))
		if response.Code != want {
			t.Errorf("%s: status %d, want %d", path, response.Code, want)
		}
	}
	for _, row := range []struct {
		reason, path string
		handler      http.Handler
	}{
		{"a path without an endpoint", "/other", handler},
		{"without a handler", "/validate", nil},
	} {
		if err := set.Activate(row.path, row.handler); err == nil {
			t.Errorf("%s: activated", row.reason)
		}
	}
}
