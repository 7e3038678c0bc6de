package configuration

import (
	"testing"

	"github.com/google/cel-go/cel"
	admission "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/quaymaster/quaymaster/policy"
)

// whole is an input in which every sort of webhook is made: for all namespaces, for
// single ones and all but them, labelled, for Namespaces and objects of the cluster,
// and the policies' own.
func whole(t *testing.T) Input {
	t.Helper()
	in := full(t)
	in.BreakGlass = true
	itself := &policy.Policy{Kind: "ClusterPolicy", Name: "owned"}
	targets := []policy.Target{{Version: "*", Kind: "Namespace"}, {Version: "*", Kind: "Namespace", Subresource: "status"}, {Group: "example.com", Version: "*", Kind: "Fleet"}}
	itself.Mutations = []policy.Mutation{aboutObjects(targets)}
	itself.Validations = []policy.Validation{aboutObjects(targets)}
	optIn := about([]string{"ReplicationController"}, named("labelled"), func(p *policy.Policy) { p.Kind = "ClusterImagePolicy" })
	in.Policies = append(in.Policies, itself, optIn)
	in.Labelled = Labelled{Label: "include", Value: "true", Is: func(p *policy.Policy) bool { return p.Kind == "ClusterImagePolicy" }}
	return in
}

// TestNoBreakGlass: the label has no effect where it is not guarded.
func TestNoBreakGlass(t *testing.T) {
	in := whole(t)
	in.BreakGlass = false
	made, err := Build(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range append(validating(made.Mutating.Webhooks), made.Validating.Webhooks...) {
		for _, r := range w.NamespaceSelector.MatchExpressions {
			if r.Key == BreakGlass {
				t.Errorf("%s: the label is selected by", w.Name)
			}
		}
		if len(w.MatchConditions) > 0 && w.MatchConditions[0].Expression != specUnchanged {
			t.Errorf("%s: conditions %v", w.Name, w.MatchConditions)
		}
	}
}

// TestBreakGlass: no webhook selects a namespace that carries the label, whatever its
// value, but for those about Namespaces themselves and policies; without the label it
// is as it was.
func TestBreakGlass(t *testing.T) {
	made, err := Build(whole(t))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, w := range append(validating(made.Mutating.Webhooks), made.Validating.Webhooks...) {
		selector, err := metav1.LabelSelectorAsSelector(w.NamespaceSelector)
		if err != nil {
			t.Fatal(err)
		}
		exempt := w.Name == documentsName || aboutNamespaces(w)
		seen[w.Name] = true
		for _, namespace := range []string{"shop", "bank"} {
			own := labels.Set{namespaceLabel: namespace, "include": "true"}
			before := selector.Matches(own)
			for _, value := range []string{"", "2026-11-23", "false"} {
				own[BreakGlass] = value
				if after := selector.Matches(own); after != (before && exempt) {
					t.Errorf("%s: the namespace %s with %s=%q is selected: %v, before the label %v", w.Name, namespace, BreakGlass, value, after, before)
				}
			}
		}
		if conditional := len(w.MatchConditions) == 1 && w.MatchConditions[0].Expression == withoutBreakGlass; conditional != aboutNamespaces(w) {
			t.Errorf("%s: conditions %v", w.Name, w.MatchConditions)
		}
	}
	for _, name := range []string{"namespaces" + validateSuffix, "namespaces" + mutateSuffix, "fail" + validateSuffix, documentsName} {
		if !seen[name] {
			t.Errorf("there is no webhook %s among %v", name, seen)
		}
	}
}

// aboutNamespaces reports whether Namespaces are asked about, which share a webhook
// with nothing else.
func aboutNamespaces(w admission.ValidatingWebhook) bool {
	for _, r := range w.Rules {
		if r.APIGroups[0] == "" && r.Resources[0] == "namespaces" {
			return true
		}
	}
	return false
}

// TestNamespacesUnderBreakGlass evaluates the condition as the API server does.
func TestNamespacesUnderBreakGlass(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(withoutBreakGlass)
	if issues.Err() != nil {
		t.Fatal(issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	with := func(labels map[string]any) any { return map[string]any{"metadata": map[string]any{"labels": labels}} }
	broken, intact, bare := with(map[string]any{"team": "a", BreakGlass: ""}), with(map[string]any{"team": "a"}), map[string]any{"metadata": map[string]any{}}
	for _, row := range []struct {
		reason, operation string
		object, old       any
		required          bool
	}{
		{"the label is set", "UPDATE", broken, intact, false},
		{"it stays", "UPDATE", broken, broken, false},
		{"it is taken off", "UPDATE", intact, broken, true},
		{"and all others with it", "UPDATE", bare, broken, true},
		{"it has nothing to do with it", "UPDATE", intact, intact, true},
		{"no labels", "UPDATE", bare, bare, true},
		{"another label with such a name", "UPDATE", with(map[string]any{BreakGlass + "-not": ""}), intact, true},
		{"a namespace is made with it", "CREATE", broken, nil, true},
		{"and without", "CREATE", intact, nil, true},
		{"one with it is deleted", "DELETE", nil, broken, true},
	} {
		got, _, err := program.Eval(map[string]any{"object": row.object, "oldObject": row.old, "request": map[string]any{"operation": row.operation}})
		if err != nil {
			t.Fatalf("%s: an error would fail the request without asking: %v", row.reason, err)
		}
		if got.Value() != row.required {
			t.Errorf("%s: asked is %v", row.reason, got.Value())
		}
	}
}
