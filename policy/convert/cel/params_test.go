package cel_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel"
)

// TestParams: the parameter of a rule becomes a variable; what has no form is refused with its path.
func TestParams(t *testing.T) {
	const (
		head = "{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: test}, spec: {rules: [\n" +
			"  {name: r, match: {any: [{resources: {kinds: [Pod]}}]}, BEFORE validate: {failureAction: Enforce, cel: {PARAMS, expressions: [{expression: \"EXPRESSION\"}]}}}]}}"
		kind = "paramKind: {apiVersion: v1, kind: ConfigMap}"
		one  = kind + ", paramRef: {name: limits, namespace: default}"
		at   = "spec.rules[0].validate.cel."
	)
	for _, c := range []struct{ reason, before, params, expression, written, refused string }{
		{"a parameter", "", one, "object.metadata.name == params.data.name", "expression: object.metadata.name == variables.params.data.name", ""},
		{"one that may not be read", "", one, "object.metadata.name == 'a' || params.data.a == 'b'",
			"has(variables.params.metadata) ? (object.metadata.name == 'a' || variables.params.data.a == 'b') : false", ""},
		{"one that is not read", "", one, "object.metadata.name == 'params'", "has(variables.params.metadata) ? (object.metadata.name == 'params') : false", ""},
		{"one of the cluster", "", "paramKind: {apiVersion: v1, kind: Namespace}, paramRef: {name: a}", "has(params.metadata.labels)",
			"resource.Get('v1', 'namespaces', '', 'a')", ""},
		{"a variable that reads it", "", one + ", variables: [{name: most, expression: params.data.most}]", "object.metadata.name == variables.most", "expression: variables.params.data.most", ""},
		{"by labels", "", kind + ", paramRef: {namespace: default, selector: {matchLabels: {a: b}}}", "true", "", at + "paramRef"},
		{"in the namespace of the object", "", kind + ", paramRef: {name: limits}", "true", "", at + "paramRef.namespace"},
		{"a custom kind", "", "paramKind: {apiVersion: example.com/v1, kind: Limit}, paramRef: {name: a}", "true", "", at + "paramKind"},
		{"a variable of that name", "", one + ", variables: [{name: params, expression: '1'}]", "true", "", at + "variables[0]"},
		{"preconditions", "celPreconditions: [{name: a, expression: \"has(params.data)\"}],", one, "true", "", "spec.rules[0].celPreconditions[0]"},
	} {
		result := convertText(t, strings.NewReplacer("BEFORE", c.before, "PARAMS", c.params, "EXPRESSION", c.expression).Replace(head), cel.Options{})
		if c.refused != "" {
			if len(result.Problems) != 1 || !strings.HasSuffix(result.Problems[0].Path, ": "+c.refused) {
				t.Errorf("%s: %v", c.reason, result.Problems)
			}
			continue
		}
		written, err := cel.YAML(result.Policies)
		if err != nil || len(result.Problems) > 0 || !strings.Contains(string(written), c.written) {
			t.Errorf("%s: %v, %v\n%s\nlacks %s", c.reason, err, result.Problems, written, c.written)
		}
	}
}
