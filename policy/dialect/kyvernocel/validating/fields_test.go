package validating_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/validating"
)

// TestRefused refuses what has no meaning here, with its path; the document without it
// compiles.
func TestRefused(t *testing.T) {
	good := asks("true")
	compile(t, head+good)
	many := strings.Repeat("  - {expression: 'true'}\n", 201)
	documents := func(expression string) string {
		return "spec: {evaluation: {mode: JSON}, validations: [{expression: \"" + expression + "\"}]}\n"
	}
	compile(t, head+about("pods", "  validations:\n"+strings.Repeat("  - {expression: 'true'}\n", 200)))
	compile(t, head+documents("http.Get('https://a.example') == 1"))
	compile(t, strings.Replace(head, "Validating", "NamespacedValidating", 1)+asks("request.name == 'a'"))
	for _, c := range []struct{ reason, text, want string }{
		{"a resource of which no webhook is called", head + strings.NewReplacer(`[""]`, "['*']", "[pods]", "[validatingwebhookconfigurations]").Replace(good), "spec.matchConstraints.resourceRules[0]: a rule about ValidatingWebhookConfiguration"},
		{"an unknown field", head + good + "  nosuch: 1\n", "spec.nosuch: unknown field"},
		{"a field of another dialect", head + good + "  paramKind: {apiVersion: v1, kind: ConfigMap}\n", "spec.paramKind: unknown field"},
		{"a field twice", head + good + "  failurePolicy: Fail\n  failurePolicy: Ignore\n", "failurePolicy"},
		{"another API", strings.Replace(head, "/v1", "/v2", 1) + good, "is no ValidatingPolicy"},
		{"another kind", strings.Replace(head, "ValidatingPolicy", "MutatingPolicy", 1) + good, "is no ValidatingPolicy"},
		{"no name", strings.Replace(head, "name: test", "labels: {}", 1) + good, "metadata.name: is empty"},
		{"no validation", head + about("pods", ""), "spec.validations: is empty, and so are spec.auditAnnotations"},
		{"too many", head + about("pods", "  validations:\n"+many), "spec.validations: 201 are more than 200"},
		{"nothing that it matches", head + "spec: {validations: [{expression: 'true'}]}\n", "spec.matchConstraints.resourceRules: is empty"},
		{"an unknown kind", head + about("apps/tasks", "  validations: [{expression: 'true'}]\n"), `no kind is known for the resource "tasks"`},
		{"no CEL", head + asks("object."), "spec.validations[0].expression: ERROR"},
		{"no truth", head + asks("'true'"), "the value is of type string, and has to be bool"},
		{"an empty expression", head + about("pods", "  validations: [{expression: ''}]\n"), "spec.validations[0].expression: the expression is empty"},
		{"a message of another type", head + about("pods", "  validations: [{expression: 'true', messageExpression: '1'}]\n"), "spec.validations[0].messageExpression: the value is of type int"},
		{"a reason", head + about("pods", "  validations: [{expression: 'true', reason: Because}]\n"), "spec.validations[0].reason: unknown reason"},
		{"an action", head + good + "  validationActions: [Deny, Shout]\n", "spec.validationActions[1]: unknown action"},
		{"a failure policy", head + good + "  failurePolicy: Never\n", "spec.failurePolicy: unknown value"},
		{"a mode", head + good + "  evaluation: {mode: HTTP}\n", "spec.evaluation.mode: unknown value"},
		{"a timeout", head + good + "  webhookConfiguration: {timeoutSeconds: 0}\n", "spec.webhookConfiguration.timeoutSeconds: want 1 to 30"},
		{"a controller", head + good + "  autogen: {podControllers: {controllers: [jobs, jobsets]}}\n", "spec.autogen.podControllers.controllers[1]: unknown controller"},
		{"parameters", head + asks("params.most > 1"), "undeclared reference to 'params'"},
		{"images, a variable of another dialect", head + asks("images.containers.size() > 0"), "undeclared reference to 'images'"},
		{"an unknown member of a request", head + asks("request.uid == 'a'"), "undefined field 'uid'"},
		{"an unknown member of a namespace", head + asks("namespaceObject.status.phase == 'Active'"), "namespaceObject.status is not known here"},
		{"something else that exceptions allow", head + asks("exceptions.allowedUsers == []"), "undefined field 'allowedUsers'"},
		{"an Object, which only mutations make", head + asks("Object{} == null"), "undeclared reference to 'Object'"},
		{"a variable that is not there", head + asks("variables.a"), "undefined field 'a'"},
		{"a variable that comes later", head + about("pods", "  variables: [{name: a, expression: variables.b}, {name: b, expression: '1'}]\n  validations: [{expression: 'true'}]\n"), "spec.variables[0].expression"},
		{"a variable in a condition", head + about("pods", "  variables: [{name: a, expression: 'true'}]\n  matchConditions: [{name: c, expression: variables.a}]\n  validations: [{expression: 'true'}]\n"), "spec.matchConditions[0].expression"},
		{"something else that exceptions allow, in a condition", head + good + "  matchConditions: [{name: c, expression: 'exceptions.allowedUsers == []'}]\n", "spec.matchConditions[0].expression"},
		{"a condition twice", head + good + "  matchConditions: [{name: c, expression: 'true'}, {name: c, expression: 'true'}]\n", "spec.matchConditions[1].name"},
		{"an annotation twice", head + good + "  auditAnnotations: [{key: a, valueExpression: \"'a'\"}, {key: a, valueExpression: \"'a'\"}]\n", "spec.auditAnnotations[1].key"},
		{"an annotation of another type", head + good + "  auditAnnotations: [{key: a, valueExpression: '1'}]\n", "spec.auditAnnotations[0].valueExpression"},
		{"http in a policy of a namespace", strings.Replace(head, "Validating", "NamespacedValidating", 1) + asks("http.Get('https://a.example') == 1"), "undeclared reference to 'http'"},
		{"global context in one", strings.Replace(head, "Validating", "NamespacedValidating", 1) + asks("globalContext.Get('a', '') == 1"), "undeclared reference to 'globalContext'"},
		{"another namespace in one", strings.Replace(head, "Validating", "NamespacedValidating", 1) + asks("resource.Get('v1', 'secrets', 'other', 'a') == {}"), "no matching overload"},
		{"a policy of documents in a namespace", strings.Replace(head, "Validating", "NamespacedValidating", 1) + documents("true"), "spec.evaluation.mode: JSON is for documents that are in no namespace"},
		{"neither at admission nor in scans", head + good + "  evaluation: {admission: {enabled: false}, background: {enabled: false}}\n", "spec.evaluation.admission.enabled: is false, and scans leave the policy out"},
		{"not at admission, about the requester", head + asks("request.userInfo.username != 'eve'") + "  evaluation: {admission: {enabled: false}}\n", "spec.evaluation.admission.enabled: is false, and scans leave the policy out"},
		{"an unknown member, in a message", head + about("pods", "  validations: [{expression: 'true', messageExpression: namespaceObject.status.phase}]\n"), "spec.validations[0].messageExpression: namespaceObject.status is not known here"},
		{"or in an annotation", head + good + "  auditAnnotations: [{key: a, valueExpression: namespaceObject.status.phase}]\n", "spec.auditAnnotations[0].valueExpression: namespaceObject.status is not known here"},
		{"a request in a policy of documents", head + "spec: {evaluation: {mode: JSON}, validations: [{expression: \"request.name == 'a'\"}]}\n", "undeclared reference to 'request'"},
	} {
		_, err := validating.New(kyvernocel.Options{}).Compile([]byte(c.text), "test.yaml")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestAccepted takes every field that has a meaning, and those that are ignored.
func TestAccepted(t *testing.T) {
	if p := compile(t, head+asks("true")); p.Unscanned != "" || p.FailOpen || p.AuditOnly {
		t.Errorf("without any of them: %+v", p)
	}
	for _, version := range []string{"v1", "v1beta1", "v1alpha1"} {
		text := strings.Replace(head, "/v1", "/"+version, 1) + about("pods", `  failurePolicy: Ignore
  validationActions: [Warn, Audit]
  webhookConfiguration: {timeoutSeconds: 30}
  evaluation: {mode: Kubernetes, admission: {enabled: true}, background: {enabled: false}}
  autogen: {podControllers: {controllers: [deployments]}, validatingAdmissionPolicy: {enabled: true}}
  variables: [{name: a, expression: '1'}]
  matchConditions: [{name: c, expression: 'true'}]
  validations: [{expression: variables.a == 1, message: not so, messageExpression: "'no'", reason: Invalid}]
  auditAnnotations: [{key: a, valueExpression: "'b'"}]
status: {autogen: {}}
`)
		p := compile(t, text)
		if !p.FailOpen || !p.AuditOnly || p.Unscanned == "" || len(p.Validations) != 2 || len(p.Hash) != 64 {
			t.Errorf("%s: %+v", version, p)
		}
		if dialect := (&validating.Compiler{}); !dialect.Recognises("policies.kyverno.io/"+version, "ValidatingPolicy") || dialect.Recognises("policies.kyverno.io/"+version, "ImageValidatingPolicy") {
			t.Error("the dialect recognises", version)
		}
		if !(&validating.Compiler{}).Recognises("policies.kyverno.io/"+version, "NamespacedValidatingPolicy") || (&validating.Compiler{}).Recognises("admissionregistration.k8s.io/"+version, "ValidatingPolicy") {
			t.Error("recognises", version)
		}
	}
	for _, field := range validating.Ignored() {
		if field.Path == "" || field.Reason == "" {
			t.Errorf("%+v", field)
		}
	}
}

// FuzzCompile compiles arbitrary documents.
func FuzzCompile(f *testing.F) {
	f.Add(head + asks("object.spec.containers.all(c, c.image != '')"))
	f.Add(controls()[0].text())
	f.Add("spec: {evaluation: {mode: JSON}}")
	compiler := validating.New(kyvernocel.Options{})
	f.Fuzz(func(t *testing.T, text string) {
		p, err := compiler.Compile([]byte(text), "fuzz")
		if (p == nil) != (err != nil) {
			t.Fatal(p, err)
		}
		if err != nil {
			compiler.Broken([]byte(text), "fuzz", err)
			return
		}
		for _, v := range p.Validations {
			v.Validate(t.Context(), policyCase(t))
		}
	})
}
