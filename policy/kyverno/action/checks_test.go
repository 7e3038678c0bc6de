package action_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/kyverno/action"
)

// TestOverridesOfRules: a rule's overrides take the place of the policy's, and a rule that
// has none keeps those.
func TestOverridesOfRules(t *testing.T) {
	override := func(a, namespace string) []action.Override {
		return []action.Override{{Action: a, Namespaces: []string{namespace}}}
	}
	whole, err := action.Compile(action.Document{Overrides: override("Enforce", "prod")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason, namespace string
		rule              action.Document
		want              policy.Action
	}{
		{"the rule has none", "prod", action.Document{}, policy.Enforce},
		{"the rule has an empty list", "prod", action.Document{Overrides: []action.Override{}}, policy.Enforce},
		{"the rule has its own for another namespace", "prod", action.Document{Overrides: override("Enforce", "test")}, policy.Audit},
		{"the rule has its own", "test", action.Document{Overrides: override("Enforce", "test")}, policy.Enforce},
		{"the rule has its own, which admits", "prod", action.Document{Overrides: override("Audit", "*")}, policy.Audit},
	} {
		actions, err := whole.With(c.rule, "rule")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := actions.Of(&policy.Subject{Namespace: c.namespace}, ""); got != c.want || err != nil {
			t.Errorf("%s: %q, %v, want %s", c.reason, got, err, c.want)
		}
	}
	// An object of the cluster has no namespace; of a bare one nobody knows it.
	for _, c := range []struct {
		bare bool
		want policy.Action
	}{{false, policy.Audit}, {true, ""}} {
		if got, err := whole.Of(&policy.Subject{Bare: c.bare}, ""); got != c.want || (err != nil) != c.bare {
			t.Errorf("without a namespace, bare %t: %q, %v", c.bare, got, err)
		}
	}
}
