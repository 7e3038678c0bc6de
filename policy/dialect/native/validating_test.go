package native_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/native"
)

const count = "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: 'size(object.spec.containers) <= int(params.data.most)', messageExpression: \"'at most ' + params.data.most\"}]"

// TestValidate: test/e2e compares more policies with the API server's results.
func TestValidate(t *testing.T) {
	const never = "  validations: [{expression: 'false', message: no good}]"
	const fails = "  validations: [{expression: \"object.spec.gone == 'a'\"}]"
	const why = "expression 'object.spec.gone == 'a'' resulted in error: no such key: gone"
	for _, c := range []struct{ reason, spec, binding, want string }{
		{"a validation does not hold", never, "", "fail Enforce no good"},
		{"it holds", "  validations: [{expression: 'true', message: no good}]", "", "pass Enforce"},
		{"a warning", never, "  validationActions: [Warn]", "fail Warn no good"},
		{"an audit", never, "  validationActions: [Audit]", "fail Audit no good"},
		{"the strictest action", never, "  validationActions: [Audit, Deny]", "fail Enforce no good"},
		{"an error", fails, "", "indeterminate Enforce " + why},
		{"an error that is ignored", "  failurePolicy: Ignore\n" + fails, "", "indeterminate Audit " + why},
		{"an error under audit", fails, "  validationActions: [Audit]", "indeterminate Audit " + why},
		{"a violation after an error that is ignored", "  failurePolicy: Ignore\n  validations: [{expression: \"object.spec.gone == 'a'\"}, {expression: 'false', message: second}]", "", "fail Enforce second"},
		{"a violation after an error", "  validations: [{expression: \"object.spec.gone == 'a'\"}, {expression: 'false', message: second}]", "", "fail Enforce " + why},
		{"a condition does not hold", "  matchConditions: [{name: a, expression: 'false'}]\n" + never, "", "skip Enforce the policy's matchConditions do not hold"},
		{"a condition fails", "  matchConditions: [{name: a, expression: \"object.spec.gone == 'a'\"}]\n" + never, "", "indeterminate Enforce " + why},
		{"a condition fails, which is ignored", "  failurePolicy: Ignore\n  matchConditions: [{name: a, expression: \"object.spec.gone == 'a'\"}]\n" + never, "", "indeterminate Audit " + why},
		{"a condition has no namespace", "  matchConditions: [{name: a, expression: namespaceObject == null}]\n" + never, "", "fail Enforce no good"},
		{"a validation has one", "  validations: [{expression: \"namespaceObject.metadata.labels.team == 'a'\"}]", "", "pass Enforce"},
		{"a parameter", count, "  paramRef: {name: low, namespace: params, parameterNotFoundAction: Deny}", "fail Enforce at most 1"},
		{"another parameter", count, "  paramRef: {name: high, namespace: params, parameterNotFoundAction: Deny}", "pass Enforce"},
		{"a parameter of the object's namespace", count, "  paramRef: {name: own, parameterNotFoundAction: Deny}", "fail Enforce at most 1"},
		{"each of the parameters", count, "  paramRef: {namespace: params, selector: {matchLabels: {limits: 'yes'}}, parameterNotFoundAction: Deny}", "fail Enforce at most 1"},
		{"parameters by expressions", count, "  paramRef: {namespace: params, selector: {matchExpressions: [{key: name, operator: In, values: [high]}]}, parameterNotFoundAction: Deny}", "pass Enforce"},
		{"no parameter", count, "  paramRef: {name: gone, namespace: params, parameterNotFoundAction: Deny}\n  validationActions: [Audit]", "indeterminate Enforce failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		{"no parameter, which is ignored", "  failurePolicy: Ignore\n" + count, "  paramRef: {name: gone, namespace: params, parameterNotFoundAction: Deny}", "indeterminate Audit failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"},
		{"no parameter, which is allowed", count, "  paramRef: {name: gone, namespace: params, parameterNotFoundAction: Allow}", "skip Enforce there is no parameter, and parameterNotFoundAction is Allow"},
		{"no answer about a parameter", strings.Replace(count, "ConfigMap", "Secret", 1), "  paramRef: {name: gone, namespace: params, parameterNotFoundAction: Allow}", "indeterminate Enforce no answer"},
		{"no answer is not ignored", "  failurePolicy: Ignore\n" + strings.Replace(count, "ConfigMap", "Secret", 1), "  paramRef: {name: gone, namespace: params, parameterNotFoundAction: Allow}", "indeterminate Enforce no answer"},
		{"a namespace for parameters of the cluster", strings.Replace(count, "ConfigMap", "Node", 1), "  paramRef: {name: low, namespace: params, parameterNotFoundAction: Deny}", "indeterminate Enforce failed to configure binding: paramRef.namespace must not be provided for a cluster-scoped `paramKind`"},
		{"no paramRef", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: params == null}]", "", "pass Enforce"},
		{"the requester is not known", "  validations: [{expression: \"request.userInfo.username == 'carol'\"}]", "", "indeterminate Enforce request.userInfo.username is not known here"},
		{"which is not ignored", "  failurePolicy: Ignore\n  validations: [{expression: \"request.userInfo.username == 'carol'\"}]", "", "indeterminate Enforce request.userInfo.username is not known here"},
		{"a violation whatever the requester is", "  validations: [{expression: \"request.userInfo.username == 'carol'\"}, {expression: 'false', message: second}]", "", "fail Enforce second"},
		{"a member of the namespace is not known", "  validations: [{expression: \"namespaceObject.status.phase == 'Active'\"}]", "", "indeterminate Enforce namespaceObject.status is not known here"},
		{"a member of the request is not known", "  validations: [{expression: request.dryRun}]", "", "indeterminate Enforce request.dryRun is not known here"},
		{"an annotation fails", "  auditAnnotations: [{key: a, valueExpression: string(object.spec.gone)}]", "  validationActions: [Audit]", "indeterminate Enforce expression 'string(object.spec.gone)' resulted in error: no such key: gone"},
		{"an annotation fails, which is ignored", "  failurePolicy: Ignore\n  auditAnnotations: [{key: a, valueExpression: string(object.spec.gone)}]", "", "pass Enforce"},
		{"a variable fails", "  variables: [{name: gone, expression: object.spec.gone}]\n  validations: [{expression: variables.gone == 1}]", "", "indeterminate Enforce expression 'variables.gone == 1' resulted in error: composited variable \"gone\" fails to evaluate: no such key: gone"},
		{"a long message", "  validations: [{expression: 'false', message: short, messageExpression: \"'" + strings.Repeat("a", 5<<10+1) + "'\"}]", "", "fail Enforce short"},
		{"a binding for other objects", never, "  matchResources: {objectSelector: {matchLabels: {app: db}}}", ""},
		{"a binding for other namespaces", never, "  matchResources: {namespaceSelector: {matchLabels: {team: b}}}", ""},
		{"a binding that excludes it", never, "  matchResources: {excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}", ""},
		{"a binding that excludes updates", never, "  matchResources: {excludeResourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [pods]}]}", "fail Enforce no good"},
	} {
		if got := said(validate(t, compile(t, validating(c.spec, c.binding)), pod())); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestUnmatched: where it is not known whether a policy matches, only a pass is certain.
func TestUnmatched(t *testing.T) {
	unknown := func(s *policy.Subject) { s.NamespaceKnown, s.NamespaceLabels = false, nil }
	const team = "  matchResources: {namespaceSelector: {matchLabels: {team: a}}}"
	for _, c := range []struct {
		reason, spec, binding string
		change                func(*policy.Subject)
		want                  policy.Result
	}{
		{"a violation", "  validations: [{expression: 'false'}]", team, unknown, policy.Indeterminate},
		{"a pass", "  validations: [{expression: 'true'}]", team, unknown, policy.Pass},
		{"another part excludes it", "  validations: [{expression: 'false'}]", team + "\n  validationActions: [Deny]", func(s *policy.Subject) { unknown(s); s.Kind = "Job" }, ""},
		{"the labels are known", "  validations: [{expression: 'false'}]", team, func(*policy.Subject) {}, policy.Fail},
		{"images alone", "  validations: [{expression: 'false'}]", "", func(s *policy.Subject) { s.Bare = true }, ""},
	} {
		if got := validate(t, compile(t, validating(c.spec, c.binding)), pod(c.change)).Result; got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}

// TestExempt: the API server evaluates no policy for the kinds of policies, nor for reviews.
func TestExempt(t *testing.T) {
	p := compile(t, document("ValidatingAdmissionPolicy", "  matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: ['*/*']}]}\n  validations: [{expression: 'false'}]")+
		bound("ValidatingAdmissionPolicy", "bound", ""))
	for _, c := range []struct {
		group, kind string
		want        policy.Result
	}{
		{"admissionregistration.k8s.io", "ValidatingAdmissionPolicy", ""},
		{"admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding", ""},
		{"admissionregistration.k8s.io", "ValidatingWebhookConfiguration", policy.Fail},
		{"authorization.k8s.io", "SubjectAccessReview", ""},
		{"authentication.k8s.io", "TokenReview", ""},
		{"authentication.k8s.io", "TokenRequest", policy.Fail},
		{"other.io", "ValidatingAdmissionPolicy", policy.Fail},
	} {
		s := pod(func(s *policy.Subject) { s.Group, s.Kind = c.group, c.kind })
		if got := validate(t, p, s).Result; got != c.want {
			t.Errorf("%s %s: %q, want %q", c.group, c.kind, got, c.want)
		}
	}
}

// TestSubresources: a rule for pods is not one for the containers that are added later, other than for
// webhooks here.
func TestSubresources(t *testing.T) {
	added := func(s *policy.Subject) { s.Subresource, s.Operation = "ephemeralcontainers", "UPDATE" }
	for _, c := range []struct {
		resources string
		want      policy.Result
	}{{"pods", ""}, {"pods/ephemeralcontainers", policy.Fail}, {"pods/*", policy.Fail}} {
		p := compile(t, strings.Replace(validating("  validations: [{expression: 'false'}]", ""), "resources: [pods]", "resources: ['"+c.resources+"']", 1))
		if got := validate(t, p, pod(added)).Result; got != c.want {
			t.Errorf("%s: %q, want %q", c.resources, got, c.want)
		}
	}
}

// TestUnbound: a policy without a binding enforces nothing, other than in Kyverno's suites.
func TestUnbound(t *testing.T) {
	text := document("ValidatingAdmissionPolicy", ofPods+"  validations: [{expression: 'false', message: no good}]")
	p := compile(t, text)
	if len(p.Validations) != 0 || len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "enforces nothing") {
		t.Errorf("%d rules, warnings %q", len(p.Validations), p.Warnings)
	}
	p = compile(t, text, func(o *native.Options) { o.Unbound = true })
	if got := said(validate(t, p, pod())); got != "fail Enforce no good" {
		t.Errorf("%q", got)
	}
}

// TestReport: the author's reason and annotations are in the result.
func TestReport(t *testing.T) {
	spec := "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: 'false', reason: Forbidden}]\n  auditAnnotations: [{key: most, valueExpression: string(params.data.most)}, {key: none, valueExpression: 'null'}]"
	p := compile(t, validating(spec, "  paramRef: {namespace: params, selector: {matchLabels: {limits: 'yes'}}, parameterNotFoundAction: Deny}"))
	v := validate(t, p, pod())
	if v.Properties["reason"] != "Forbidden" || !maps.Equal(v.AuditAnnotations, map[string]string{"most": "9, 1"}) {
		t.Errorf("%v %v", v.Properties, v.AuditAnnotations)
	}
	if !p.OfServer || p.AuditOnly || p.FailOpen {
		t.Errorf("%+v", p.Settings)
	}
	p = compile(t, validating("  failurePolicy: Ignore\n  validations: [{expression: \"request.userInfo.username == 'a'\"}]", "  validationActions: [Warn]"))
	if !p.AuditOnly || !p.FailOpen || p.Unscanned == "" {
		t.Errorf("%+v", p.Settings)
	}
}
