package action_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/action"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/match"
)

func TestActions(t *testing.T) {
	labels := &match.Selector{MatchLabels: map[string]string{"env": "prod"}}
	for _, c := range []struct {
		policy    action.Document
		rule      action.Document
		own       policy.Action
		namespace string
		want      policy.Action
		reason    string
	}{
		{action.Document{}, action.Document{}, "", "a", policy.Audit, "the default"},
		{action.Document{Usual: "Enforce"}, action.Document{}, "", "a", policy.Enforce, "the policy's"},
		{action.Document{Usual: "enforce"}, action.Document{}, "", "a", policy.Enforce, "the old spelling"},
		{action.Document{Usual: "Enforce"}, action.Document{}, policy.Audit, "a", policy.Audit, "an entry's own"},
		{action.Document{Overrides: []action.Override{{Action: "Enforce", Namespaces: []string{"a*"}}}}, action.Document{}, "", "ab", policy.Enforce, "an override"},
		{action.Document{Overrides: []action.Override{{Action: "Enforce", Namespaces: []string{"a*"}}}}, action.Document{}, "", "b", policy.Audit, "an override for others"},
		{action.Document{Overrides: []action.Override{{Action: "Enforce", NamespaceSelector: labels}}}, action.Document{}, "", "a", policy.Enforce, "an override by labels"},
		{action.Document{Warns: true}, action.Document{}, "", "a", policy.Warn, "emitWarning"},
		{action.Document{Usual: "Enforce", Warns: true}, action.Document{}, "", "a", policy.Enforce, "emitWarning applies to admitted objects"},
		{action.Document{Usual: "Enforce"}, action.Document{Usual: "Audit"}, "", "a", policy.Audit, "a rule's own"},
		{action.Document{Usual: "Enforce", Overrides: []action.Override{{Action: "Enforce", Namespaces: []string{"*"}}}}, action.Document{Usual: "Audit"}, "", "a", policy.Audit, "a rule's own, and the policy's overrides"},
		{action.Document{Usual: "Enforce"}, action.Document{Overrides: []action.Override{{Action: "Audit", Namespaces: []string{"a"}}}}, "", "a", policy.Audit, "a rule's override"},
		{action.Document{Overrides: []action.Override{{Action: "Enforce", Namespaces: []string{"prod"}}}}, action.Document{Overrides: []action.Override{{Action: "Audit", Namespaces: []string{"sandbox"}}}}, "", "prod", policy.Enforce, "the policy's override, where none of the rule fits"},
		{action.Document{Overrides: []action.Override{{Action: "Enforce", Namespaces: []string{"*"}}}}, action.Document{Overrides: []action.Override{{Action: "Audit", Namespaces: []string{"sandbox"}}}}, "", "sandbox", policy.Audit, "the rule's override first"},
		{action.Document{Overrides: []action.Override{{Action: "Enforce", Namespaces: []string{"*"}}}}, action.Document{Usual: "Audit", Overrides: []action.Override{{Action: "Audit", Namespaces: []string{"sandbox"}}}}, "", "prod", policy.Audit, "the rule's action before the policy's overrides"},
	} {
		actions, err := action.Compile(c.policy)
		if err == nil && (c.rule.Usual != "" || c.rule.Overrides != nil) {
			actions, err = actions.With(c.rule, "rule")
		}
		if err != nil {
			t.Fatal(err)
		}
		s := &policy.Subject{Namespace: c.namespace, NamespaceMeta: policy.NamespaceMeta{NamespaceKnown: true, NamespaceLabels: map[string]string{"env": "prod"}}}
		if got, err := actions.Of(s, c.own); got != c.want || err != nil {
			t.Errorf("%s: %q, %v", c.reason, got, err)
		}
		if c.want == policy.Enforce && c.own == "" && !actions.CanEnforce() {
			t.Errorf("%s: it cannot enforce", c.reason)
		}
	}
	actions, err := action.Compile(action.Document{Overrides: []action.Override{{Action: "Enforce", NamespaceSelector: labels}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := actions.Of(&policy.Subject{Namespace: "a"}, ""); err == nil {
		t.Error("no error for unknown labels")
	}
	if _, err := actions.Of(&policy.Subject{Shape: policy.Shape{Bare: true}}, ""); err == nil {
		t.Error("no error for an unknown namespace")
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		doc  action.Document
		want string
	}{
		{action.Document{Usual: "Block"}, "spec.validationFailureAction: unknown action"},
		{action.Document{Overrides: []action.Override{{Action: "Deny", Namespaces: []string{"a"}}}}, "spec.validationFailureActionOverrides[0].action: unknown action"},
		{action.Document{Overrides: []action.Override{{Action: "Audit"}}}, "spec.validationFailureActionOverrides[0].namespaces: is missing"},
		{action.Document{Overrides: []action.Override{{Action: "Enforce", Namespaces: []string{"prod", "Prod-*"}}}}, `spec.validationFailureActionOverrides[0].namespaces[1]: "Prod-*" matches no namespace`},
		{action.Document{Overrides: []action.Override{{Action: "Enforce", Namespaces: []string{""}}}}, "spec.validationFailureActionOverrides[0].namespaces[0]: is empty"},
	} {
		if _, err := action.Compile(c.doc); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if _, err := (action.Actions{}).With(action.Document{Usual: "Block"}, "rule"); err == nil || !strings.Contains(err.Error(), "rule.failureAction: ") {
		t.Error(err)
	}
}

func Example() {
	actions, err := action.Compile(action.Document{Usual: "Enforce", Overrides: []action.Override{{Action: "Audit", Namespaces: []string{"sandbox-*"}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, namespace := range []string{"prod", "sandbox-ann"} {
		fmt.Println(actions.Of(&policy.Subject{Namespace: namespace}, ""))
	}
	// Output:
	// Enforce <nil>
	// Audit <nil>
}
