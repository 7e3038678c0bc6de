package kyverno_test

import (
	"encoding/json"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

// TestExceptionsThatKyvernoDoesNotHave has conditions that hold here, and not in Kyverno 1.19: an exception with one
// covers nothing. Its twin holds in both.
func TestExceptionsThatKyvernoDoesNotHave(t *testing.T) {
	for _, c := range []struct {
		reason, key, condition string
		covers                 bool
	}{
		{"a text that is JSON is no set", `"5"`, `operator: AnyNotIn, value: "10"`, false},
		{"a list is", `"5"`, `operator: AnyNotIn, value: ["10"]`, true},
		{"nor is a boolean as text", `"a"`, `operator: AllNotIn, value: "true"`, false},
		{"a word is", `"a"`, `operator: AllNotIn, value: b`, true},
		{"a number as a set", `"10"`, `operator: AnyIn, value: 10`, false},
		{"a list of it", `"10"`, `operator: AnyIn, value: [10]`, true},
		{"a range under the old name", `"5"`, `operator: In, value: "1-10"`, false},
		{"a range under the new one", `"5"`, `operator: AnyIn, value: "1-10"`, true},
		{"a word under the old name", `"b"`, `operator: NotIn, value: a`, false},
		{"a list under the old name", `"b"`, `operator: NotIn, value: [a]`, true},
		{"outside of a range, under the old name", `"20"`, `operator: NotIn, value: "1-10"`, false},
		{"outside of a range", `"20"`, `operator: AnyNotIn, value: "1-10"`, true},
		{"a quantity and a wildcard", `"10"`, `operator: Equals, value: "?*"`, false},
		{"a text and a wildcard", `"ab"`, `operator: Equals, value: "?*"`, true},
		{"a quantity beside a number", `"1Gi"`, `operator: GreaterThan, value: 5`, false},
		{"a quantity beside a quantity", `"1Gi"`, `operator: GreaterThan, value: "5"`, true},
		{"a wildcard for a list, under the old name", `["ab"]`, `operator: In, value: ["a*"]`, false},
		{"a wildcard for a list", `["ab"]`, `operator: AllIn, value: ["a*"]`, true},
		{"an empty list and a number", `[]`, `operator: AllIn, value: 0`, false},
		{"an empty list and a list", `[]`, `operator: AllIn, value: [0]`, true},
		{"a list in a text that is JSON", `[5, 10]`, `operator: AnyIn, value: "10"`, false},
		{"a list in a list", `[5, 10]`, `operator: AnyIn, value: ["10"]`, true},
		{"a number as Kyverno writes it", `1000000`, `operator: AnyIn, value: ["1000000"]`, false},
		{"a small one", `100`, `operator: AnyIn, value: ["100"]`, true},
		{"a range of patterns", `"20"`, `operator: AnyIn, value: "1!-10"`, false},
		{"no range", `"20"`, `operator: AnyNotIn, value: "1!-10"`, true},
	} {
		e, err := newCompiler(t, nil).CompileException([]byte("{apiVersion: kyverno.io/v2, kind: PolicyException, metadata: {name: e, namespace: a}, spec: {exceptions: [{policyName: p, ruleNames: [r]}], "+
			"match: {any: [{resources: {kinds: [Pod]}}]}, conditions: {any: [{key: \"{{ request.object.spec.k }}\", "+c.condition+"}]}}}"), "test.yaml")
		if err != nil {
			t.Fatal(err)
		}
		var key any
		if err := json.Unmarshal([]byte(c.key), &key); err != nil {
			t.Fatal(err)
		}
		s := &policy.Subject{
			Kind: "Pod", Version: "v1", Name: "a", Namespace: "a", Operation: "CREATE",
			Object: policy.ContentOf(map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"k": key}}),
		}
		if covers, err := e.Scope.Covers(t.Context(), s); covers != c.covers {
			t.Errorf("%s: %t, %v", c.reason, covers, err)
		}
	}
}
