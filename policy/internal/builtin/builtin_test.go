package builtin_test

import (
	"slices"
	"testing"

	"github.com/quaymaster/quaymaster/policy/internal/builtin"
)

// TestMayHave: the operations of each subresource, of Kubernetes' resources and of others.
func TestMayHave(t *testing.T) {
	all := []string{"CREATE", "UPDATE", "DELETE", "CONNECT"}
	for _, c := range []struct {
		subresource    string
		builtin, other []string
	}{
		{"", []string{"CREATE", "UPDATE", "DELETE"}, all},
		{"status", []string{"UPDATE"}, []string{"UPDATE"}},
		{"scale", []string{"UPDATE"}, []string{"UPDATE"}},
		{"log", nil, all},
		{"exec", []string{"CONNECT"}, all},
		{"proxy", []string{"CONNECT"}, all},
		{"eviction", []string{"CREATE"}, all},
		{"token", []string{"CREATE"}, all},
		{"ephemeralcontainers", []string{"UPDATE"}, all},
		{"approval", []string{"UPDATE"}, all},
		{"*", all, all},
	} {
		for _, operation := range all {
			if got, want := builtin.MayHave(c.subresource, operation, true), slices.Contains(c.builtin, operation); got != want {
				t.Errorf("%s of %q: %t", operation, c.subresource, got)
			}
			if got, want := builtin.MayHave(c.subresource, operation, false), slices.Contains(c.other, operation); got != want {
				t.Errorf("%s of %q outside of Kubernetes: %t", operation, c.subresource, got)
			}
		}
	}
}

// TestFind: a kind is one of its group.
func TestFind(t *testing.T) {
	for _, r := range builtin.Resources() {
		if found, ok := builtin.Find(r.Group, r.Kind); !ok || found != r {
			t.Errorf("%s of %q: %+v", r.Kind, r.Group, found)
		}
		if _, ok := builtin.Find("example.org", r.Kind); ok {
			t.Errorf("%s of another group is found", r.Kind)
		}
		for _, sub := range r.Subresources() {
			if !builtin.IsSubresource(sub) {
				t.Errorf("%s of %s is no subresource", sub, r.Name)
			}
		}
	}
	if builtin.IsSubresource("configmaps") {
		t.Error("a resource counts as a subresource")
	}
}
