package mutating_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/constraint"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/mutating"
)

// widgets knows a kind of the cluster.
type widgets struct{}

func (widgets) Named(group, name string) []constraint.Resource {
	if group != "example.com" || name != "widgets" {
		return nil
	}
	return []constraint.Resource{{Name: name, Group: group, Kind: "Widget"}}
}

// TestRefused refuses what has no meaning here, with its path; the document without it
// compiles.
func TestRefused(t *testing.T) {
	good := about("pods", merges("Object{}"))
	compile(t, head+good)
	namesOf := func(n int) string {
		return strings.Replace(targets, "[deployments]", "[deployments], resourceNames: ["+strings.Repeat("a, ", n-1)+"a]", 1)
	}
	compile(t, existing(namesOf(200)))
	compile(t, head+about("pods", merges(slices.Repeat([]string{"Object{}"}, 200)...)))
	for _, c := range []struct{ reason, text, want string }{
		{"a resource of which no webhook is called", head + strings.NewReplacer(`[""]`, "['*']", "[pods]", "[tokenreviews]").Replace(good), "spec.matchConstraints.resourceRules[0]: a rule about TokenReview"},
		{"neither at admission nor for existing objects", head + good + "  evaluation: {admission: {enabled: false}}\n", "spec.evaluation.admission.enabled: is false"},
		{"an unknown field", head + good + "  nosuch: 1\n", "spec.nosuch: unknown field"},
		{"another API", strings.Replace(head, "/v1", "/v2", 1) + good, "is no MutatingPolicy"},
		{"another kind", strings.Replace(head, "MutatingPolicy", "ValidatingPolicy", 1) + good, "is no MutatingPolicy"},
		{"no name", strings.Replace(head, "name: test", "labels: {}", 1) + good, "metadata.name: is empty"},
		{"no mutation", head + about("pods", ""), "spec.mutations: want 1 to 200, found 0"},
		{"too many mutations", head + about("pods", merges(slices.Repeat([]string{"Object{}"}, 201)...)), "spec.mutations: want 1 to 200, found 201"},
		{"nothing that it matches", head + "spec:\n" + merges("Object{}"), "spec.matchConstraints.resourceRules: is empty"},
		{"deletions alone", head + strings.Replace(good, "CREATE, UPDATE", "DELETE", 1), "spec.matchConstraints.resourceRules: are about neither CREATE nor UPDATE"},
		{"an unknown kind", head + about("apps/widgets", merges("Object{}")), "no kind is known"},
		{"no type of patch", head + about("pods", "  mutations: [{applyConfiguration: {expression: 'Object{}'}}]\n"), `spec.mutations[0].patchType: unknown value ""`},
		{"another type of patch", head + about("pods", "  mutations: [{patchType: JSONPatch, applyConfiguration: {expression: 'Object{}'}}]\n"), "spec.mutations[0]: want jsonPatch and nothing else"},
		{"both", head + about("pods", "  mutations: [{patchType: ApplyConfiguration, jsonPatch: {expression: '[]'}, applyConfiguration: {expression: 'Object{}'}}]\n"), "spec.mutations[0]: want applyConfiguration and nothing else"},
		{"nothing to merge", head + about("pods", "  mutations: [{patchType: ApplyConfiguration}]\n"), "spec.mutations[0]: want applyConfiguration and nothing else"},
		{"no operations", head + about("pods", "  mutations: [{patchType: JSONPatch}]\n"), "spec.mutations[0]: want jsonPatch and nothing else"},
		{"both for the other type", head + about("pods", "  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[]'}, applyConfiguration: {expression: 'Object{}'}}]\n"), "spec.mutations[0]: want jsonPatch and nothing else"},
		{"no CEL", head + about("pods", merges("Object{")), "spec.mutations[0].applyConfiguration.expression: ERROR"},
		{"no Object", head + about("pods", merges("{'a': 'b'}")), "has to be Object"},
		{"a part for the object", head + about("pods", merges("Object.spec{}")), "has to be Object"},
		{"no list of operations", head + about("pods", patches("JSONPatch{op: 'add'}")), "has to be list(JSONPatch)"},
		{"a field that no operation has", head + about("pods", patches("[JSONPatch{op: 'add', to: '/a'}]")), "undefined field 'to'"},
		{"an operation of another type", head + about("pods", patches("[JSONPatch{op: 1}]")), "expected type of field 'op' is 'string'"},
		{"authorizer in a policy of a namespace", strings.Replace(head, "MutatingPolicy", "NamespacedMutatingPolicy", 1) + about("pods", merges("authorizer.group('') == null ? Object{} : Object{}")), "undeclared reference to 'authorizer'"},
		{"parameters", head + about("pods", merges("params == null ? Object{} : Object{}")), "undeclared reference to 'params'"},
		{"something else that exceptions allow", head + about("pods", merges("exceptions.allowedUsers == [] ? Object{} : Object{}")), "undefined field 'allowedUsers'"},
		{"exceptions for existing objects", head + about("pods", "  evaluation: {mutateExisting: {enabled: true}}\n"+merges("exceptions.allowedImages == [] ? Object{} : Object{}")), "undeclared reference to 'exceptions'"},
		{"a variable that is not there", head + about("pods", merges("variables.a ? Object{} : Object{}")), "undefined field 'a'"},
		{"a variable that does not compile", head + good + "  variables: [{name: a, expression: nothing}]\n", "spec.variables[0].expression"},
		{"an annotation that reads an unknown member", head + good + "  auditAnnotations: [{key: a, valueExpression: namespaceObject.status.phase}]\n", "spec.auditAnnotations[0].valueExpression: namespaceObject.status is not known here"},
		{"an unknown member of a namespace", head + about("pods", merges("namespaceObject.status.phase == 'a' ? Object{} : Object{}")), "namespaceObject.status is not known here"},
		{"a wrong condition", head + good + "  matchConditions: [{name: a, expression: '1'}]\n", "spec.matchConditions[0].expression: the value is of type int"},
		{"two conditions of a name", head + good + "  matchConditions: [{name: the name, expression: 'true'}, {name: the name, expression: 'true'}]\n", "spec.matchConditions[1].name"},
		{"a condition without a name", head + good + "  matchConditions: [{expression: 'true'}]\n", "spec.matchConditions[0].name"},
		{"a failure policy", head + good + "  failurePolicy: Never\n", "spec.failurePolicy: unknown value"},
		{"a reinvocation policy", head + good + "  reinvocationPolicy: Always\n", "spec.reinvocationPolicy: unknown value"},
		{"documents", head + good + "  evaluation: {mode: JSON}\n", "spec.evaluation.mode: a mutation of documents"},
		{"another mode", head + good + "  evaluation: {mode: Envoy}\n", "spec.evaluation.mode: unknown value"},
		{"targets of nothing", head + good + "  targetMatchConstraints: {expression: object}\n", "spec.targetMatchConstraints: selects existing objects to change, and spec.evaluation.mutateExisting.enabled is not true"},
		{"conditions on targets of nothing", head + good + "  targetMatchConditions: [{name: a, expression: 'true'}]\n", "spec.targetMatchConditions: selects existing objects to change"},
		{"targets by an expression of another type", existing("expression: '1'"), "spec.targetMatchConstraints.expression: the value is of type int"},
		{"targets by an expression that reads an unknown member", existing("expression: 'namespaceObject.status'"), "spec.targetMatchConstraints.expression: "},
		{"no targets", existing(""), "spec.targetMatchConstraints.resourceRules: want 1 to 200 kinds and names, found 0"},
		{"targets by labels of namespaces that there cannot be", existing(targets + ", namespaceSelector: {matchExpressions: [{key: a, operator: Like}]}"), "spec.targetMatchConstraints.namespaceSelector"},
		{"targets by exclusions", existing(targets + ", excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]"), "spec.targetMatchConstraints.excludeResourceRules: a choice of objects by exclusions is not supported"},
		{"targets of every kind", existing("resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: ['*']}]"), "spec.targetMatchConstraints.resourceRules[0]: a choice of *"},
		{"targets of every version", existing("resourceRules: [{apiGroups: [''], apiVersions: ['*'], resources: [secrets]}]"), "spec.targetMatchConstraints.resourceRules[0]: a choice of Secret of version *"},
		{"targets that are subresources", existing("resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments/scale]}]"), `and subresource "scale"`},
		{"which only pods have", existing("resourceRules: [{apiGroups: [apps], apiVersions: [v1], resources: [deployments/ephemeralcontainers]}]"), `deployments has no subresource "ephemeralcontainers"`},
		{"targets by scope", existing("resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [secrets], scope: Cluster}]"), "spec.targetMatchConstraints.resourceRules[0].scope"},
		{"too many targets", existing(namesOf(201)), "spec.targetMatchConstraints.resourceRules: want 1 to 200 kinds and names, found 201"},
		{"targets of an unknown kind", existing(strings.Replace(targets, "deployments", "widgets", 1)), "no kind is known"},
		{"targets by labels that there cannot be", existing(targets + ", objectSelector: {matchExpressions: [{key: a, operator: Like}]}"), "spec.targetMatchConstraints.objectSelector"},
		{"triggers that are subresources", strings.Replace(existing(targets), "[configmaps]", "[pods, pods/eviction]", 1), "spec.matchConstraints.resourceRules[0].resources[1]: a policy about existing objects with the triggers pods/eviction (a request for it leaves nothing"},
		{"triggers that are any subresource", strings.Replace(existing(targets), "[configmaps]", "[pods/*]", 1), "with the triggers pods/* (name the subresources"},
		{"triggers that are subresources of any kind", strings.Replace(existing(targets), "[configmaps]", "['*/status']", 1), "with the triggers */status (each kind needs a watch"},
		{"a request for a subresource by a user", strings.NewReplacer("[configmaps]", "[configmaps, pods/status]", "request.name", "request.userInfo.username").Replace(existing(targets)),
			"spec.matchConstraints.resourceRules[0].resources[1]: the trigger of a policy about existing objects that reads the requester, which a request for a subresource does not record"},
		{"a wrong condition on targets", existing(targets) + "  targetMatchConditions: [{name: a, expression: '1'}]\n", "spec.targetMatchConditions[0].expression: the value is of type int"},
		{"a deletion by a user", strings.NewReplacer("CREATE, UPDATE", "CREATE, DELETE", "request.name", "request.userInfo.username").Replace(existing(targets)), "spec.matchConstraints.resourceRules[0].operations[1]: the operation DELETE of a policy about existing objects that reads the requester"},
		{"any operation by a user", strings.NewReplacer("CREATE, UPDATE", "'*'", "request.name", "request.userInfo.username").Replace(existing(targets)), "spec.matchConstraints.resourceRules[0].operations[0]: the operation DELETE"},
		{"a trigger that is a connection", strings.Replace(existing(targets), "CREATE, UPDATE", "CREATE, CONNECT", 1), "spec.matchConstraints.resourceRules[0].operations[1]: the operation CONNECT of a policy about existing objects is not supported"},
		{"triggers of every kind", strings.Replace(existing(targets), "[configmaps]", "['*']", 1), "spec.matchConstraints.resourceRules[0].resources[0]"},
		{"an unknown controller", head + good + "  autogen: {podControllers: {controllers: [pods]}}\n", "spec.autogen.podControllers.controllers[0]: unknown controller"},
		{"a timeout", head + good + "  webhookConfiguration: {timeoutSeconds: 31}\n", "spec.webhookConfiguration.timeoutSeconds: want 1 to 30"},
		{"http in a policy of a namespace", strings.Replace(head, "MutatingPolicy", "NamespacedMutatingPolicy", 1) + about("pods", merges("http.Get('https://a.example') == null ? Object{} : Object{}")), "undeclared reference to 'http'"},
	} {
		_, err := mutating.New(kyvernocel.Options{}).Compile([]byte(c.text), "test.yaml")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestAccepted takes every field that has a meaning, and those that are ignored.
func TestAccepted(t *testing.T) {
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		p := compile(t, strings.Replace(head, "/v1", "/"+version, 1)+about("pods", merges("Object{}")+`  failurePolicy: Ignore
  reinvocationPolicy: IfNeeded
  webhookConfiguration: {timeoutSeconds: 5}
  evaluation: {mode: Kubernetes, admission: {enabled: true}, background: {enabled: false}, mutateExisting: {enabled: false}, skipBackgroundRequests: true, useServerSideApply: false}
  autogen: {podControllers: {controllers: [deployments, cronjobs]}, mutatingAdmissionPolicy: {enabled: true}}
  auditAnnotations: [{key: a, valueExpression: "'b'"}]
status: {generated: true}
`))
		if !p.FailOpen || len(p.Mutations) != 3 || p.Kind != "MutatingPolicy" {
			t.Errorf("%s: %+v", version, p)
		}
		if dialect := (&mutating.Compiler{}); !dialect.Recognises("policies.kyverno.io/"+version, "MutatingPolicy") || dialect.Recognises("policies.kyverno.io/"+version, "ImageValidatingPolicy") {
			t.Error("the dialect recognises", version)
		}
		if !(&mutating.Compiler{}).Recognises("policies.kyverno.io/"+version, "NamespacedMutatingPolicy") || (&mutating.Compiler{}).Recognises("kyverno.io/"+version, "MutatingPolicy") {
			t.Error("recognises", version)
		}
	}
	for _, field := range mutating.Ignored() {
		if field.Path == "" || field.Reason == "" {
			t.Errorf("%+v", field)
		}
	}
}

// TestUndefinedFields: a field that no kind has that is matched or changed is refused with its
// path, and one that may be a custom kind's is a warning.
func TestUndefinedFields(t *testing.T) {
	change := func(expression string) string {
		return merges("Object{metadata: Object.metadata{labels: {'a': " + expression + "}}}")
	}
	for _, c := range []struct{ reason, text, want string }{
		{"a field", head + about("pods", change("string(object.spec.nodeName)")), ""},
		{"none", head + about("pods", change("string(object.spec.nodName)")), `spec.mutations[0].applyConfiguration.expression: undefined field "object.spec.nodName"`},
		{"none in a patch", head + about("pods", patches("[JSONPatch{op: 'add', path: '/a', value: object.spec.nodName}]")), "spec.mutations[0].jsonPatch.expression: undefined field"},
		{"none in a condition", head + about("pods", "  matchConditions: [{name: a, expression: object.spec.nodName != ''}]\n"+change("'b'")), "spec.matchConditions[0].expression: undefined field"},
		{"none in a variable", head + about("pods", "  variables: [{name: a, expression: object.spec.nodName}]\n"+change("'b'")), "spec.variables[0].expression: undefined field"},
		{"of a namespace's policy", strings.Replace(head, "Mutating", "NamespacedMutating", 1) + about("pods", change("string(object.spec.nodName)")), "undefined field"},
		{"of a target", strings.Replace(existing(targets), "Object{", "object.spec.replicas == 0 ? Object{} : Object{", 1), ""},
		{"none of a target", strings.Replace(existing(targets), "Object{", "object.spec.replicasss == 0 ? Object{} : Object{", 1), "undefined field"},
	} {
		_, err := mutating.New(kyvernocel.Options{Kinds: widgets{}}).Compile([]byte(c.text), "test.yaml")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
	for expression, warned := range map[string]bool{"string(object.spec.any)": false, "string(object.metadata.any)": true} {
		p, err := mutating.New(kyvernocel.Options{Kinds: widgets{}}).Compile([]byte(head+about("example.com/widgets", change(expression))), "test.yaml")
		if err != nil || (len(p.Warnings) > 0) != warned {
			t.Errorf("%s of a custom kind: %v, %+v", expression, err, p)
		}
	}
}
