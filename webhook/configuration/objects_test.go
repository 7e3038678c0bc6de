package configuration

import (
	"context"
	"slices"
	"strings"
	"testing"

	admission "k8s.io/api/admissionregistration/v1"

	"github.com/quaymaster/quaymaster/policy"
)

// aboutObjects is a rule about objects of some kinds, of both sorts.
type aboutObjects []policy.Target

func (aboutObjects) Name() string               { return "rule" }
func (a aboutObjects) Targets() []policy.Target { return a }

func (aboutObjects) Validate(context.Context, policy.Case) policy.Validated {
	return policy.Validated{}
}
func (aboutObjects) Mutate(context.Context, policy.Case) policy.Mutated { return policy.Mutated{} }

// TestObjects: rules about objects are asked at their endpoint, about the kinds,
// operations and subresources that they name, and of images nothing else changes.
func TestObjects(t *testing.T) {
	target := func(group, kind, subresource string, operations ...string) policy.Target {
		return policy.Target{Group: group, Version: "*", Kind: kind, Subresource: subresource, Operations: operations}
	}
	for _, row := range []struct {
		reason               string
		change, check        []policy.Target
		mutating, validating []string // "fail configmaps CREATE,UPDATE"
	}{
		{"a validation is asked at its endpoint alone", nil, []policy.Target{target("", "ConfigMap", "")}, nil, []string{"Fail configmaps CREATE,UPDATE"}},
		{"and a mutation at its own", []policy.Target{target("", "ConfigMap", "")}, nil, []string{"Fail configmaps CREATE,UPDATE"}, nil},
		{"a deletion where it is named", nil, []policy.Target{target("", "ConfigMap", "", "DELETE")}, nil, []string{"Fail configmaps DELETE"}},
		{"exec is a connection", nil, []policy.Target{target("", "Pod", "exec", "CONNECT")}, nil, []string{"Fail pods/exec CONNECT"}},
		{"a pod brings the containers that are added later", nil, []policy.Target{target("", "Pod", "")}, nil, []string{"Fail pods CREATE,UPDATE", "Fail pods/ephemeralcontainers UPDATE"}},
		{"a namespace that is named", nil, []policy.Target{target("", "Namespace", "")}, nil, []string{"Fail namespaces CREATE,UPDATE"}},
		{"a node that is named, which fails open", nil, []policy.Target{target("", "Node", "")}, nil, []string{"Ignore nodes CREATE,UPDATE"}},
		{"a lease that is named, which fails open", nil, []policy.Target{target("coordination.k8s.io", "Lease", "")}, nil, []string{"Ignore leases CREATE,UPDATE"}},
		{"never a review", nil, []policy.Target{target("authentication.k8s.io", "TokenReview", "")}, nil, nil},
	} {
		p := &policy.Policy{Kind: "ClusterPolicy", Name: "p"}
		if row.change != nil {
			p.Mutations = []policy.Mutation{aboutObjects(row.change)}
		}
		if row.check != nil {
			p.Validations = []policy.Validation{aboutObjects(row.check)}
		}
		p.Targets = slices.Concat(row.change, row.check) // of all rules, as dialects say it
		c, err := Build(input(t, p))
		if err != nil {
			t.Fatal(err)
		}
		var changing, checking []string
		for _, w := range c.Mutating.Webhooks {
			changing = append(changing, spelt(w.FailurePolicy, w.Rules)...)
			if len(w.MatchConditions) > 0 && !strings.HasPrefix(w.Name, "namespaces-") {
				t.Errorf("%s: %s leaves updates out", row.reason, w.Name)
			}
		}
		for _, w := range c.Validating.Webhooks {
			if w.Name != documentsName {
				checking = append(checking, spelt(w.FailurePolicy, w.Rules)...)
			}
		}
		slices.Sort(checking)
		if !slices.Equal(changing, row.mutating) || !slices.Equal(checking, row.validating) {
			t.Errorf("%s: mutating %q, validating %q", row.reason, changing, checking)
		}
	}
}

// TestEveryKind: a pattern for kinds means all that is served, for a rule about
// objects, but for those that are never asked about.
func TestEveryKind(t *testing.T) {
	p := &policy.Policy{Kind: "ClusterPolicy", Name: "p", ObjectRules: policy.ObjectRules{Validations: []policy.Validation{aboutObjects{{Group: "*", Version: "*", Kind: "*"}}}}}
	c, err := Build(input(t, p))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, w := range c.Validating.Webhooks {
		all = append(all, spelt(w.FailurePolicy, w.Rules)...)
	}
	text := strings.Join(all, " ")
	if !strings.Contains(text, "configmaps") || strings.Contains(text, "nodes") {
		t.Errorf("asked about %q", all)
	}
}

// spelt writes the rules of a webhook, a line a resource.
func spelt(failure *admission.FailurePolicyType, rules []admission.RuleWithOperations) []string {
	var lines []string
	for _, r := range rules {
		var operations []string
		for _, o := range r.Operations {
			operations = append(operations, string(o))
		}
		for _, resource := range r.Resources {
			lines = append(lines, string(*failure)+" "+resource+" "+strings.Join(operations, ","))
		}
	}
	return lines
}
