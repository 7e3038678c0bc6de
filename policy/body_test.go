package policy_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestMeansBody: a rule for the subresource of a custom kind may match a body of another
// kind, as long as the request does not show that its resource is in another group.
func TestMeansBody(t *testing.T) {
	resource := func(members map[string]any) policy.Request {
		return policy.RequestOf(map[string]any{"resource": members})
	}
	foos := resource(map[string]any{"group": "example.com", "version": "v1", "resource": "foos"})
	rule := policy.Target{Group: "example.com", Version: "*", Kind: "Foo", Subresource: "scale"}
	for _, c := range []struct {
		reason  string
		target  policy.Target
		subject policy.Subject
		want    bool
	}{
		{"the resource is in the group", rule, policy.Subject{Group: "autoscaling", Kind: "Scale", Subresource: "scale", Request: foos}, true},
		{"nothing is known of it", rule, policy.Subject{Group: "autoscaling", Kind: "Scale", Subresource: "scale"}, true},
		{"the group is not known", rule, policy.Subject{Group: "autoscaling", Kind: "Scale", Subresource: "scale", Request: resource(map[string]any{"resource": "foos"})}, true},
		{"the group is another one", rule, policy.Subject{Group: "autoscaling", Kind: "Scale", Subresource: "scale", Request: resource(map[string]any{"group": "example.net", "resource": "foos"})}, false},
		{"the subresource is another one", rule, policy.Subject{Group: "autoscaling", Kind: "Scale", Subresource: "status", Request: foos}, false},
		{"a body in another group", policy.Target{Group: "example.com", Version: "*", Kind: "Foo", Subresource: "*"}, policy.Subject{Group: "options.example.net", Kind: "RunOptions", Subresource: "run", Request: foos}, true},
		{"the kind is known, and another one", rule, policy.Subject{Group: "example.com", Kind: "Bar", Subresource: "scale", Request: foos}, false},
		{"a rule for the object", policy.Target{Group: "example.com", Version: "*", Kind: "Foo"}, policy.Subject{Group: "autoscaling", Kind: "Scale", Subresource: "scale", Request: foos}, false},
		{"in another namespace", policy.Target{Group: "*", Version: "*", Kind: "Foo", Subresource: "scale", Namespaces: []string{"shop"}}, policy.Subject{Group: "autoscaling", Kind: "Scale", Subresource: "scale", Namespace: "other", Request: foos}, false},
		{"a Scale that is no body", rule, policy.Subject{Group: "autoscaling", Kind: "Scale", Request: foos}, false},
	} {
		if got := c.target.Means(&c.subject); got != c.want {
			t.Errorf("%s: %t, want %t", c.reason, got, c.want)
		}
	}
}
