package native

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	admission "k8s.io/api/admissionregistration/v1"
)

// TestConditions: an API server asks no native policy about requests that the gateway admits whatever policies say.
func TestConditions(t *testing.T) {
	env, err := cel.NewEnv(cel.Variable("object", cel.DynType), cel.Variable("oldObject", cel.DynType), cel.Variable("request", cel.DynType))
	if err != nil {
		t.Fatal(err)
	}
	const (
		pod     = `{"metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["f/f"], "generation": 1}, "spec": {"nodeName": "n"}}`
		leaving = `{"metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["f/f"], "generation": 2, "deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"nodeName": "n"}}`
		mirror  = `{"metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "1"}}, "spec": {"nodeName": "n"}}`
		pods    = `"resource": {"group": "", "version": "v1", "resource": "pods"}`
		create  = `{"operation": "CREATE", ` + pods + `, "userInfo": {"username": "system:node:n", "groups": ["system:nodes"]}}`
		update  = `{"operation": "UPDATE", ` + pods + `, "userInfo": {"username": "u"}}`
	)
	for _, row := range []struct {
		reason, request, object, old string
		asked                        bool
	}{
		{"a new pod", create, pod, `null`, true},
		{"the mirror pod of the node", create, mirror, `null`, false},
		{"the mirror pod of another node", in(t, create, "node:n", "node:m"), mirror, `null`, true},
		{"a user in no group of nodes", in(t, create, `"system:nodes"`, ""), mirror, `null`, true},
		{"a mirror pod on no node", create, in(t, mirror, `"nodeName": "n"`, ""), `null`, true},
		{"an empty annotation", create, in(t, mirror, `"1"`, `""`), `null`, true},
		{"a subresource", in(t, create, `"CREATE"`, `"CREATE", "subResource": "binding"`), mirror, `null`, true},
		{"a resource of the same name", in(t, create, `"group": ""`, `"group": "own.example"`), mirror, `null`, true},
		{"an update of a mirror pod", in(t, create, "CREATE", "UPDATE"), mirror, pod, true},
		{"no change", update, pod, pod, false},
		{"another generation", update, in(t, pod, `"generation": 1`, `"generation": 2`), pod, false},
		{"another label", update, in(t, pod, `"b"`, `"c"`), pod, true},
		{"no label", update, in(t, pod, `"labels": {"a": "b"}, `, ""), pod, true},
		{"a further annotation", update, in(t, pod, `"labels"`, `"annotations": {"a": "b"}, "labels"`), pod, true},
		{"another spec", update, in(t, pod, `"nodeName": "n"`, `"nodeName": "m"`), pod, true},
		{"no spec", update, in(t, pod, `, "spec": {"nodeName": "n"}`, ""), pod, true},
		{"a further member", update, in(t, pod, `"spec"`, `"data": {}, "spec"`), pod, true},
		{"a finalizer, and no deletion", update, in(t, pod, `"finalizers": ["f/f"], `, ""), pod, true},
		{"a finalizer in deletion", update, in(t, leaving, `"finalizers": ["f/f"], `, ""), leaving, false},
		{"a label in deletion", update, in(t, leaving, `"b"`, `"c"`), leaving, true},
		{"a spec in deletion", update, in(t, leaving, `"nodeName": "n"`, `"nodeName": "m"`), leaving, true},
		{"a deletion", `{"operation": "DELETE", ` + pods + `, "userInfo": {}}`, `null`, pod, true},
	} {
		values := map[string]any{}
		for name, text := range map[string]string{"object": row.object, "oldObject": row.old, "request": row.request} {
			var value any
			if err := json.Unmarshal([]byte(text), &value); err != nil {
				t.Fatalf("%s: %s: %v", row.reason, name, err)
			}
			values[name] = value
		}
		holds := func(expression string) bool {
			parsed, issues := env.Compile(expression)
			if issues.Err() != nil {
				t.Fatalf("%s: %v", expression, issues.Err())
			}
			program, err := env.Program(parsed)
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := program.Eval(values)
			if err != nil {
				t.Fatalf("%s: %s: %v", row.reason, expression, err)
			}
			return got.Value() == true
		}
		all := true
		for _, c := range conditions(nil) {
			all = all && holds(c.Expression)
		}
		if all != row.asked || holds(isAsked()) != row.asked {
			t.Errorf("%s: by conditions the policy is asked: %t, by its validations: %t", row.reason, all, holds(isAsked()))
		}
	}
}

// TestPassExempt: a policy has the conditions in its validations, or as conditions where it has some, or where its expressions
// cannot be extended.
func TestPassExempt(t *testing.T) {
	of := func(change func(*admission.ValidatingAdmissionPolicySpec)) admission.ValidatingAdmissionPolicySpec {
		spec := admission.ValidatingAdmissionPolicySpec{Validations: []admission.Validation{{Expression: "a || b"}}}
		change(&spec)
		passExempt(&spec)
		return spec
	}
	extended := of(func(*admission.ValidatingAdmissionPolicySpec) {})
	if extended.Validations[0].Expression != "(a || b) || !variables.quaymasterIsAsked" || len(extended.MatchConditions) > 0 || extended.Variables[0].Name != asked {
		t.Errorf("%+v", extended)
	}
	for reason, change := range map[string]func(*admission.ValidatingAdmissionPolicySpec){
		"conditions": func(s *admission.ValidatingAdmissionPolicySpec) {
			s.MatchConditions = []admission.MatchCondition{{Name: "own"}}
		},
		"annotations": func(s *admission.ValidatingAdmissionPolicySpec) {
			s.AuditAnnotations = []admission.AuditAnnotation{{Key: "own"}}
		},
		"the variable":         func(s *admission.ValidatingAdmissionPolicySpec) { s.Variables = []admission.Variable{{Name: asked}} },
		"a comment at the end": func(s *admission.ValidatingAdmissionPolicySpec) { s.Validations[0].Expression = "a // b" },
	} {
		got := of(change)
		if len(got.MatchConditions) < 2 || got.MatchConditions[0].Name != "quaymaster.dev/changes" || strings.Contains(got.Validations[0].Expression, asked) {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}
