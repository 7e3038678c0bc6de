package set_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// aboutTargets is a rule with targets of its own.
type aboutTargets struct {
	ruling
	targets []policy.Target
}

func (r aboutTargets) Targets() []policy.Target { return r.targets }

// TestMayValidate: an endpoint need not ask where no target is about the kind, the operation
// and the namespace.
func TestMayValidate(t *testing.T) {
	for _, c := range []struct {
		reason    string
		target    policy.Target
		subject   policy.Subject
		operation string
		want      bool
	}{
		{"CREATE by default", policy.Target{Version: "*", Kind: "Pod"}, policy.Subject{}, "CREATE", true},
		{"and UPDATE", policy.Target{Version: "*", Kind: "Pod"}, policy.Subject{}, "UPDATE", true},
		{"not DELETE", policy.Target{Version: "*", Kind: "Pod"}, policy.Subject{}, "DELETE", false},
		{"DELETE where it is listed", policy.Target{Version: "*", Kind: "Pod", Operations: []string{"DELETE"}}, policy.Subject{}, "DELETE", true},
		{"and nothing else", policy.Target{Version: "*", Kind: "Pod", Operations: []string{"DELETE"}}, policy.Subject{}, "CREATE", false},
		{"CONNECT of a subresource", policy.Target{Version: "*", Kind: "Pod", Subresource: "exec"}, policy.Subject{Subresource: "exec"}, "CONNECT", true},
		{"not DELETE of a subresource", policy.Target{Version: "*", Kind: "Pod", Subresource: "exec"}, policy.Subject{Subresource: "exec"}, "DELETE", false},
		{"not of an object", policy.Target{Version: "*", Kind: "Pod"}, policy.Subject{}, "CONNECT", false},
		{"its namespaces", policy.Target{Version: "*", Kind: "Pod", Namespaces: []string{"shop"}}, policy.Subject{Namespace: "shop"}, "CREATE", true},
		{"not others", policy.Target{Version: "*", Kind: "Pod", Namespaces: []string{"shop"}}, policy.Subject{Namespace: "blog"}, "CREATE", false},
	} {
		set, err := set.New(&policy.Policy{Kind: "ClusterPolicy", Name: "p", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{aboutTargets{targets: []policy.Target{c.target}}}}})
		if err != nil {
			t.Fatal(err)
		}
		s := c.subject
		s.Version, s.Kind, s.Operation = "v1", "Pod", c.operation
		if got := set.MayValidate(&s); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}
