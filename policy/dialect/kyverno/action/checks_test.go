package action_test

import (
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

// TestOverridesOfRules: a rule's overrides come before the policy's, which count where none of them
// fits.
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
		{"the rule has its own for another namespace", "prod", action.Document{Overrides: override("Enforce", "test")}, policy.Enforce},
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
	// An object of the cluster has no namespace; that of a bare one is not known.
	for _, c := range []struct {
		bare bool
		want policy.Action
	}{{false, policy.Audit}, {true, policy.Enforce}} {
		if got, err := whole.Of(&policy.Subject{Shape: policy.Shape{Bare: c.bare}}, ""); got != c.want || (err != nil) != c.bare {
			t.Errorf("without a namespace, bare %t: %q, %v", c.bare, got, err)
		}
	}
}

// TestOverridePolarity: an unknown namespace, or an object without one, never weakens a
// failure.
func TestOverridePolarity(t *testing.T) {
	prod, notProd := &match.Selector{MatchLabels: map[string]string{"env": "prod"}}, selector(t, "{matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}")
	enforce, audit := func(s *match.Selector) action.Override {
		return action.Override{Action: "Enforce", NamespaceSelector: s}
	}, func(s *match.Selector) action.Override {
		return action.Override{Action: "Audit", NamespaceSelector: s}
	}
	unknown := &policy.Subject{Kind: "Pod", Namespace: "a"}
	cluster := &policy.Subject{Kind: "ClusterRole", Group: "rbac.authorization.k8s.io"}
	namespace := &policy.Subject{Kind: "Namespace", Name: "sandbox", Namespace: "sandbox", NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: map[string]string{"env": "prod"}}}
	for _, c := range []struct {
		reason    string
		usual     string
		overrides []action.Override
		subject   *policy.Subject
		want      policy.Action
		unsure    bool
	}{
		{"labels that are not known may weaken", "Enforce", []action.Override{audit(prod)}, unknown, policy.Enforce, true},
		{"labels that are not known may strengthen", "Audit", []action.Override{enforce(prod)}, unknown, policy.Enforce, true},
		{"both readings are one", "Audit", []action.Override{audit(prod)}, unknown, policy.Audit, false},
		{"both readings enforce", "Enforce", []action.Override{enforce(notProd)}, unknown, policy.Enforce, false},
		{"two that are not known and differ", "Audit", []action.Override{audit(prod), enforce(notProd)}, unknown, policy.Enforce, true},
		{"a later one that fits, and differs", "Audit", []action.Override{audit(prod), {Action: "Enforce", Namespaces: []string{"a"}}}, unknown, policy.Enforce, true},
		{"a later one that fits, and is the same", "Enforce", []action.Override{audit(prod), {Action: "Audit", Namespaces: []string{"a"}}}, unknown, policy.Audit, false},
		{"another namespace, whatever its labels", "Enforce", []action.Override{{Action: "Audit", Namespaces: []string{"b"}, NamespaceSelector: prod}}, unknown, policy.Enforce, false},
		{"no namespace has no labels", "Enforce", []action.Override{audit(prod)}, cluster, policy.Enforce, false},
		{"and absent labels do not weaken", "Enforce", []action.Override{audit(notProd)}, cluster, policy.Enforce, false},
		{"absent labels strengthen, as in Kyverno", "Audit", []action.Override{enforce(notProd)}, cluster, policy.Enforce, false},
		{"every namespace, and none, as in Kyverno", "Enforce", []action.Override{{Action: "Audit", Namespaces: []string{"*"}}}, cluster, policy.Audit, false},
		{"a Namespace's name, which the requester writes", "Enforce", []action.Override{{Action: "Audit", Namespaces: []string{"sand*"}}}, namespace, policy.Enforce, false},
		{"a Namespace's labels, which the requester writes", "Enforce", []action.Override{audit(prod)}, namespace, policy.Enforce, false},
		{"a Namespace's labels strengthen", "Audit", []action.Override{enforce(prod)}, namespace, policy.Enforce, false},
	} {
		actions, err := action.Compile(action.Document{Usual: c.usual, Overrides: c.overrides})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := actions.Of(c.subject, ""); got != c.want || (err != nil) != c.unsure {
			t.Errorf("%s: %q, %v, want %s", c.reason, got, err, c.want)
		}
	}
}

func selector(tb testing.TB, text string) *match.Selector {
	tb.Helper()
	var s match.Selector
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		tb.Fatal(err)
	}
	return &s
}

// TestCanEnforce: an override for every namespace decides in place of all that follow it, also of objects in no
// namespace or an unknown one; any other leaves the rest.
func TestCanEnforce(t *testing.T) {
	override := func(a string, namespaces ...string) action.Override {
		return action.Override{Action: a, Namespaces: namespaces}
	}
	selected := override("Audit", "*")
	selected.NamespaceSelector = &match.Selector{MatchLabels: map[string]string{"env": "prod"}}
	for _, c := range []struct {
		reason, usual string
		overrides     []action.Override
		want          bool
	}{
		{"audit everywhere", "Enforce", []action.Override{override("Audit", "*")}, false},
		{"audit everywhere, by one of several patterns", "Enforce", []action.Override{override("Audit", "a", "*")}, false},
		{"audit everywhere, and enforced nowhere after it", "Enforce", []action.Override{override("Audit", "*"), override("Enforce", "a")}, false},
		{"enforced in one namespace before", "Enforce", []action.Override{override("Enforce", "a"), override("Audit", "*")}, true},
		{"audit in some namespaces", "Enforce", []action.Override{override("Audit", "a*")}, true},
		{"audit by labels", "Enforce", []action.Override{selected}, true},
		{"enforced everywhere", "Audit", []action.Override{override("Enforce", "*")}, true},
	} {
		actions, err := action.Compile(action.Document{Usual: c.usual, Overrides: c.overrides})
		if err != nil {
			t.Fatal(err)
		}
		if actions.CanEnforce() != c.want {
			t.Errorf("%s: %t", c.reason, !c.want)
		}
		for _, s := range []*policy.Subject{{Namespace: "a"}, {Namespace: "b"}, {Kind: "Node"}, {Shape: policy.Shape{Bare: true}}} {
			if got, err := actions.Of(s, ""); !c.want && (got != policy.Audit || err != nil) {
				t.Errorf("%s, %+v: %s, %v", c.reason, s, got, err)
			}
		}
	}
}
