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
		{"options of which no resource is known", policy.Target{Kind: "Pod", Version: "*", Subresource: "exec"}, policy.Subject{Kind: "PodExecOptions", Subresource: "exec"}, true},
		{"options of a pod", policy.Target{Kind: "Pod", Version: "*", Subresource: "exec"}, policy.Subject{Kind: "ExecRequest", Subresource: "exec", Request: resource(map[string]any{"group": "", "resource": "pods"})}, true},
		{"the pod itself", policy.Target{Kind: "Node", Version: "*", Subresource: "proxy"}, policy.Subject{Kind: "Pod", Subresource: "proxy", Request: resource(map[string]any{"group": "", "resource": "pods"})}, false},
		{"options without a subresource", policy.Target{Kind: "Pod", Version: "*"}, policy.Subject{Kind: "PodExecOptions"}, false},
		{"a Scale that is no body", rule, policy.Subject{Group: "autoscaling", Kind: "Scale", Request: foos}, false},
	} {
		if got := c.target.Means(&c.subject); got != c.want {
			t.Errorf("%s: %t, want %t", c.reason, got, c.want)
		}
	}
}
