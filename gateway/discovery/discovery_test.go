package discovery

import (
	"errors"
	"log/slog"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestServed: the API server's resources are read when a policy first asks, and an earlier caller
// is notified.
func TestServed(t *testing.T) {
	lists := []*metav1.APIResourceList{{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{{Name: "deployments", Kind: "Deployment", Namespaced: true, Verbs: []string{"create"}}}}}
	failing := errors.New("the API server is away")
	told := 0
	s := &Discovery{
		discover: func() ([]*metav1.APIResourceList, []schema.GroupVersion, error) { return lists, nil, failing },
		changed:  func() { told++ }, log: slog.New(slog.DiscardHandler), known: make(chan struct{}),
	}
	if found := s.Named("apps", "deployments"); found != nil || !s.missed.Load() {
		t.Errorf("found %v while the API server is away", found)
	}
	failing = nil
	for _, c := range []struct {
		reason, group, name string
		found               int
	}{
		{"by its group", "apps", "deployments", 1}, {"in any group", "*", "deployments", 1},
		{"in another group", "batch", "deployments", 0}, {"another name", "apps", "deployment", 0},
	} {
		if found := s.Named(c.group, c.name); len(found) != c.found {
			t.Errorf("%s: %v", c.reason, found)
		}
	}
	lists = append(lists, &metav1.APIResourceList{GroupVersion: "tekton.dev/v1", APIResources: []metav1.APIResource{{Name: "tasks", Kind: "Task", Namespaced: true, Verbs: []string{"create"}}}})
	for _, c := range []struct {
		reason  string
		changed bool
	}{{"a kind came", true}, {"nothing changed", false}} {
		if changed, err := s.Refresh(); err != nil || changed != c.changed {
			t.Errorf("%s: %t, %v", c.reason, changed, err)
		}
	}
	if found := s.Named("tekton.dev", "tasks"); len(found) != 1 || found[0].Kind != "Task" || found[0].Cluster {
		t.Errorf("%v", found)
	}
}
