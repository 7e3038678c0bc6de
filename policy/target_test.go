package policy_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

func TestTargetMeans(t *testing.T) {
	pods := policy.Target{Version: "*", Kind: "Pod"}
	pod := policy.Subject{Version: "v1", Kind: "Pod", Namespace: "shop"}
	for _, c := range []struct {
		reason string
		target policy.Target
		change func(*policy.Subject)
		want   bool
	}{
		{"the kind", pods, nil, true},
		{"another kind", policy.Target{Version: "*", Kind: "Job"}, nil, false},
		{"another group", policy.Target{Group: "apps", Version: "*", Kind: "Pod"}, nil, false},
		{"another version of the same resource", policy.Target{Version: "v2", Kind: "Pod"}, nil, true},
		{"wildcards", policy.Target{Group: "*", Version: "v?", Kind: "P*"}, nil, true},
		{"containers that are added", pods, func(s *policy.Subject) { s.Subresource = "ephemeralcontainers" }, true},
		{"another subresource", pods, func(s *policy.Subject) { s.Subresource = "exec" }, false},
		{"the subresource", policy.Target{Version: "*", Kind: "Pod", Subresource: "exec"}, func(s *policy.Subject) { s.Subresource = "exec" }, true},
		{"another subresource than that", policy.Target{Version: "*", Kind: "Pod", Subresource: "exec"}, func(s *policy.Subject) { s.Subresource = "ephemeralcontainers" }, false},
		{"a subresource is not its object", policy.Target{Version: "*", Kind: "Pod", Subresource: "exec"}, nil, false},
		{"the namespace", policy.Target{Version: "*", Kind: "Pod", Namespaces: []string{"blog", "sh*"}}, nil, true},
		{"another namespace", policy.Target{Version: "*", Kind: "Pod", Namespaces: []string{"blog"}}, nil, false},
		{"in no namespace", policy.Target{Version: "*", Kind: "Pod", Namespaces: []string{"blog"}}, func(s *policy.Subject) { s.Namespace = "" }, false},
		{"in any namespace", policy.Target{Version: "*", Kind: "Pod", Namespaces: []string{"blog"}}, func(s *policy.Subject) { s.Bare, s.Namespace = true, "" }, true},
		{"a bare one in another namespace", policy.Target{Version: "*", Kind: "Pod", Namespaces: []string{"blog"}}, func(s *policy.Subject) { s.Bare = true }, false},
		{"a bare one may be of added containers", policy.Target{Version: "*", Kind: "Pod", Subresource: "ephemeralcontainers"}, func(s *policy.Subject) { s.Bare = true }, true},
		{"another one is not", policy.Target{Version: "*", Kind: "Pod", Subresource: "ephemeralcontainers"}, nil, false},
		{"a bare one is of no other subresource", policy.Target{Version: "*", Kind: "Pod", Subresource: "exec"}, func(s *policy.Subject) { s.Bare = true }, false},
		{"whatever is done", policy.Target{Version: "*", Kind: "Pod", Operations: []string{"CREATE"}}, func(s *policy.Subject) { s.Operation = "DELETE" }, true},
	} {
		s := pod
		if c.change != nil {
			c.change(&s)
		}
		if got := c.target.Means(&s); got != c.want {
			t.Errorf("%s: %v", c.reason, got)
		}
	}
}
