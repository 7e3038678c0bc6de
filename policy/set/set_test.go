package set_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/set"
)

// TestSetRefusesPolicies: two of one ID, or one without a name, would silently not be what
// its author believes.
func TestSetRefusesPolicies(t *testing.T) {
	of := func(kind, namespace, name string) *policy.Policy {
		return &policy.Policy{Kind: kind, Namespace: namespace, Name: name, Source: "a.yaml", Hash: "1"}
	}
	for _, c := range []struct {
		reason   string
		policies []*policy.Policy
		want     string // in the error; empty: accepted
	}{
		{"one", []*policy.Policy{of("ClusterPolicy", "", "p")}, ""},
		{"two names", []*policy.Policy{of("ClusterPolicy", "", "p"), of("ClusterPolicy", "", "q")}, ""},
		{"two kinds", []*policy.Policy{of("ClusterPolicy", "", "p"), of("ClusterImagePolicy", "", "p")}, ""},
		{"two namespaces", []*policy.Policy{of("Policy", "shop", "p"), of("Policy", "team", "p")}, ""},
		{"the same twice", []*policy.Policy{of("ClusterPolicy", "", "p"), of("ClusterPolicy", "", "p")}, "ClusterPolicy/p is defined twice"},
		{"twice in one namespace", []*policy.Policy{of("Policy", "team", "p"), of("Policy", "shop", "p"), of("Policy", "team", "p")}, "Policy/team/p is defined twice"},
		{"no name", []*policy.Policy{of("ClusterPolicy", "", "")}, "a.yaml: a policy has no name"},
	} {
		made, err := set.New(c.policies...)
		if c.want == "" && (err != nil || len(made.Policies()) != len(c.policies)) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want one with %q", c.reason, err, c.want)
		}
	}
}

// TestSetHash: a set has another name where anything of it is another.
func TestSetHash(t *testing.T) {
	one := policy.Policy{Kind: "ClusterPolicy", Name: "p", Hash: "1"}
	base := setOf(t, &one).Hash()
	for _, c := range []struct {
		reason string
		change func(*policy.Policy)
		same   bool
	}{
		{"the same", func(*policy.Policy) {}, true},
		{"read elsewhere", func(p *policy.Policy) { p.Source = "elsewhere" }, true},
		{"another content", func(p *policy.Policy) { p.Hash = "2" }, false},
		{"another name", func(p *policy.Policy) { p.Name = "q" }, false},
		{"of a namespace", func(p *policy.Policy) { p.Namespace = "team" }, false},
		{"audited", func(p *policy.Policy) { p.AuditedBy = "the setting" }, false},
	} {
		changed := one
		c.change(&changed)
		if (setOf(t, &changed).Hash() == base) != c.same {
			t.Errorf("%s: the same name: %t", c.reason, !c.same)
		}
	}
	audited := policy.Audited(&one, "one")
	if setOf(t, audited).Hash() == setOf(t, policy.Audited(&one, "two")).Hash() {
		t.Error("the cause of the audit does not change the hash")
	}
}
