package native_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/native"
	"github.com/quaymaster/quaymaster/workload"
)

// TestRefused: the API server refuses these documents, too.
func TestRefused(t *testing.T) {
	const holds = "  validations: [{expression: 'true'}]"
	for _, c := range []struct{ reason, text, want string }{
		{"an unknown field", validating(holds+"\n  validation: []", ""), "spec.validation"},
		{"an unknown field of a binding", validating(holds, "  actions: [Deny]"), "spec.actions"},
		{"actions of a mutating policy's binding", mutating("  mutations: ["+label("a", `"b"`)+"]", "  validationActions: [Deny]"), "spec.validationActions"},
		{"an unknown action", validating(holds, "  validationActions: [Block]"), `unknown action "Block"`},
		{"an unknown failure policy", validating("  failurePolicy: Allow\n"+holds, ""), `spec.failurePolicy: unknown value "Allow"`},
		{"nothing to do", validating("  variables: []", ""), "spec.validations"},
		{"no resources", document("ValidatingAdmissionPolicy", holds), "spec.matchConstraints.resourceRules"},
		{"a name and a selector", validating(holds, "  paramRef: {name: a, selector: {}, parameterNotFoundAction: Deny}"), "spec.paramRef: want one of name and selector"},
		{"an unknown parameterNotFoundAction", validating(holds, "  paramRef: {name: a, parameterNotFoundAction: Warn}"), "spec.paramRef.parameterNotFoundAction"},
		{"a kind without a version", validating("  paramKind: {kind: ConfigMap}\n"+holds, ""), "spec.paramKind"},
		{"an unknown reason", validating("  validations: [{expression: 'true', reason: Wrong}]", ""), "spec.validations[0].reason"},
		{"an expression that is no bool", validating("  validations: [{expression: '1'}]", ""), "spec.validations[0].expression"},
		{"parameters without a kind", validating("  validations: [{expression: params != null}]", ""), "undeclared reference to 'params'"},
		{"a function of Kyverno", validating("  validations: [{expression: \"sha256('a') == 'b'\"}]", ""), "undeclared reference to 'sha256'"},
		{"the clock of Kyverno", validating("  validations: [{expression: \"time.now() > timestamp('2026-01-01T00:00:00Z')\"}]", ""), "undeclared reference"},
		{"a library that Kubernetes does not have", validating("  validations: [{expression: 'math.greatest(1, 2) == 2'}]", ""), "undeclared reference"},
		{"the object of the request", validating("  validations: [{expression: request.object.kind == 'Pod'}]", ""), "undefined field 'object'"},
		{"variables in a condition", validating("  variables: [{name: a, expression: 'true'}]\n  matchConditions: [{name: a, expression: variables.a}]\n"+holds, ""), "undefined field 'a'"},
		{"a condition without a qualified name", validating("  matchConditions: [{name: 'a b', expression: 'true'}]\n"+holds, ""), "spec.matchConditions[0].name"},
		{"the authorizer in a message", validating("  validations: [{expression: 'true', messageExpression: \"authorizer.serviceAccount('a', 'b').group('').resource('pods').check('get').reason()\"}]", ""), "undeclared reference to 'authorizer'"},
		{"two bindings of a name", validating(holds, "") + bound("ValidatingAdmissionPolicy", "bound", ""), "two bindings of this name"},
		{"no mutations", mutating("  mutations: []", ""), "spec.mutations"},
		{"a mutation of deletions", strings.Replace(mutating("  mutations: ["+label("a", `"b"`)+"]", ""), "[CREATE, UPDATE]", "[DELETE]", 1), "operations[0]"},
		{"a mutation of every operation in a binding", mutating("  mutations: ["+label("a", `"b"`)+"]", "  matchResources: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: [pods]}]}"), "spec.matchResources.resourceRules[0].operations[0]"},
		{"an unknown reinvocation policy", strings.Replace(mutating("  mutations: ["+label("a", `"b"`)+"]", ""), "Never", "Always", 1), "spec.reinvocationPolicy"},
		{"an unknown patch type", mutating("  mutations: [{patchType: Merge}]", ""), "spec.mutations[0].patchType"},
		{"two patches", mutating("  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[]'}, applyConfiguration: {expression: 'Object{}'}}]", ""), "spec.mutations[0]"},
		{"a member that Join makes", document("ValidatingAdmissionPolicy", ofPods+holds) + "bindings: []\n", "bindings: unknown field"},
		{"a version that is not served", strings.Replace(document("ValidatingAdmissionPolicy", ofPods+holds), "/v1\n", "/v2\n", 1), "is no policy of admissionregistration.k8s.io"},
	} {
		if _, _, err := load(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}

// TestAccepted: documents that the API server accepts compile, with a warning where they match nothing.
func TestAccepted(t *testing.T) {
	const holds = "  validations: [{expression: 'true'}]"
	for _, c := range []struct{ reason, text, warning string }{
		{"a beta version", strings.ReplaceAll(validating(holds, ""), "/v1\n", "/v1beta1\n"), ""},
		{"an alpha version", strings.ReplaceAll(mutating("  mutations: ["+label("a", `"b"`)+"]", ""), "/v1\n", "/v1alpha1\n"), ""},
		{"a status", validating(holds, "") + "", ""},
		{"a resource that is not there", strings.Replace(validating(holds, ""), "[pods]", "[gadgets]", 1), "spec.matchConstraints.resourceRules[0].resources[0]"},
		{"an operation that it never has", strings.Replace(validating(holds, ""), "operations: ['*']", "operations: [CONNECT]", 1), "spec.matchConstraints.resourceRules[0].operations"},
		{"a selector that no labels meet", validating(holds, "  matchResources: {objectSelector: {matchExpressions: [{key: a, operator: Exists}, {key: a, operator: DoesNotExist}]}}"), "no labels meet it"},
		{"a field that no pod has", validating("  validations: [{expression: object.spec.replica == 1}]", ""), "replica"},
		{"no actions", strings.Replace(validating(holds, ""), "  validationActions: [Deny]", "", 1), "it counts as Deny"},
		{"no parameterNotFoundAction", validating("  paramKind: {apiVersion: v1, kind: ConfigMap}\n"+holds, "  paramRef: {name: a}"), "it counts as Deny"},
		{"no operations", strings.Replace(validating(holds, ""), "operations: ['*'], ", "", 1), "every operation"},
		{"parameters of no kind", validating(holds, "  paramRef: {name: a, parameterNotFoundAction: Deny}"), "has no effect"},
	} {
		p := compile(t, c.text)
		is := func(warning string) bool { return strings.Contains(warning, c.warning) }
		if c.warning == "" && len(p.Warnings) > 0 || c.warning != "" && !slices.ContainsFunc(p.Warnings, is) {
			t.Errorf("%s: %q, want %q", c.reason, p.Warnings, c.warning)
		}
	}
}

func TestJoin(t *testing.T) {
	text := bound("ValidatingAdmissionPolicy", "z", "") + "---\n" + document("ValidatingAdmissionPolicy", ofPods+"  validations: [{expression: 'true'}]") +
		bound("ValidatingAdmissionPolicy", "a", "") + bound("MutatingAdmissionPolicy", "other", "") + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
	objects, err := workload.Read(strings.NewReader(strings.TrimPrefix(text, "---\n")), "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	joined, warnings, err := native.Join(objects)
	if err != nil || len(joined) != 2 || joined[1].Kind() != "ConfigMap" || len(warnings) != 1 || !strings.Contains(warnings[0], "MutatingAdmissionPolicyBinding other has no effect") {
		t.Fatalf("%v %q %v", joined, warnings, err)
	}
	list, _, err := load(t, strings.TrimPrefix(text, "---\n")[:strings.LastIndex(text, "---\n")-4])
	if err != nil || len(list) != 1 || len(list[0].Validations) != 2 || list[0].Validations[0].Name() != "a" || list[0].Validations[1].Name() != "z" {
		t.Errorf("%+v %v", list, err)
	}
}

// FuzzCompile: foreign documents are refused or compile; they do not panic.
func FuzzCompile(f *testing.F) {
	f.Add(validating("  validations: [{expression: 'true'}]", ""))
	f.Add(mutating("  mutations: ["+label("a", `"b"`)+"]", ""))
	f.Add(document("ValidatingAdmissionPolicy", "  validations: []") + "bindings: [1]\n")
	compiler := native.New(native.Options{})
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := compiler.Compile([]byte(text), "fuzz"); err == nil && p.Name == "" {
			t.Error("a policy without a name")
		}
	})
}
