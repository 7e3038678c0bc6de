package constraint

import (
	"strings"
	"testing"
)

// TestCheckDefinition: a custom resource definition has a group of its own, and contradicts no known kind.
func TestCheckDefinition(t *testing.T) {
	widget := Resource{Name: "widgets", Group: "example.com", Kind: "Widget"}
	policies := Resource{Name: "networkpolicies", Group: "networking.k8s.io", Kind: "NetworkPolicy"}
	change := func(r Resource, by func(*Resource)) Resource {
		by(&r)
		return r
	}
	for _, c := range []struct {
		reason  string
		defined Resource
		err     string
	}{
		{"a new kind", change(widget, func(r *Resource) { r.Name, r.Kind = "gadgets", "Gadget" }), ""},
		{"a known kind as it is", widget, ""},
		{"a kind of Kubernetes as it is", policies, ""},
		{"another scope", change(widget, func(r *Resource) { r.Cluster = true }), "Widget (widgets, namespaced), and Widget (widgets, cluster-scoped) here"},
		{"another name", change(widget, func(r *Resource) { r.Name = "widgetry" }), "example.com/Widget again"},
		{"the name of another kind", change(widget, func(r *Resource) { r.Kind = "Gadget" }), "example.com/Widget again"},
		{"the kind of another group", change(widget, func(r *Resource) { r.Group, r.Cluster = "example.org", true }), ""},
		{"another scope of a kind of Kubernetes", change(policies, func(r *Resource) { r.Cluster = true }), "networking.k8s.io/NetworkPolicy again"},
		{"the core group", Resource{Name: "pods", Kind: "Pod"}, `the group ""`},
		{"a group without a dot", Resource{Name: "batches", Group: "batch", Kind: "Batch"}, `the group "batch"`},
	} {
		err := checkDefinition(c.defined, append(Known(), widget))
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.err)
		}
	}
}
