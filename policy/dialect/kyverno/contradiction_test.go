package kyverno_test

import (
	"errors"
	"strings"
	"testing"
)

// TestContradictions: a policy with settings that disable it does not compile, and its
// counterpart does.
func TestContradictions(t *testing.T) {
	const head = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec:\n"
	rule := func(kind, body string) string {
		return "  rules: [{name: r, match: {any: [{resources: {kinds: [" + kind + "]}}]}, " + body + "}]\n"
	}
	const (
		denies  = "validate: {message: m, deny: {}}"
		labels  = "mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}"
		ofUser  = "validate: {message: '{{request.userInfo.username}}', deny: {}}"
		targets = "mutate: {targets: [{apiVersion: v1, kind: Secret, name: 'NAME', namespace: a}], patchStrategicMerge: {metadata: {labels: {a: '{{target.metadata.name}}'}}}}"
	)
	ofTargets := strings.Replace(targets, "NAME", "s", 1)
	for _, c := range []struct{ reason, text, path string }{
		{"never evaluated", "  admission: false\n  background: false\n" + rule("Pod", denies), "spec.background"},
		{"scanned alone", "  admission: false\n  background: true\n" + rule("Pod", denies), ""},
		{"admitted alone", "  background: false\n" + rule("Pod", denies), ""},
		{"a mutation that is never made", "  admission: false\n" + rule("ConfigMap", labels), "spec.admission"},
		{"one that is", rule("ConfigMap", labels), ""},
		{"a scan that reads the requester", "  background: true\n" + rule("ConfigMap", ofUser), "spec.background"},
		{"no scan", "  background: false\n" + rule("ConfigMap", ofUser), ""},
		{"nothing about scans", rule("ConfigMap", ofUser), ""},
		{"a scan for a role", "  background: true\n  rules: [{name: r, match: {any: [{resources: {kinds: [Pod]}, clusterRoles: [admin]}]}, " + denies + "}]\n", "spec.background"},
		{"a mutation that reads the requester is not scanned", "  background: true\n" + rule("ConfigMap", strings.Replace(labels, "a: b", "a: '{{request.userInfo.username}}'", 1)), ""},
		{"a scan of connections", "  background: true\n" + rule("Pod/exec", denies), "spec.background"},
		{"of a group's", "  background: true\n" + rule("apps/v1/Deployment/scale", denies), "spec.background"},
		{"a scan of a group's kind", "  background: true\n" + rule("apps/v1/Deployment", denies), ""},
		{"admission of connections", "  background: false\n" + rule("Pod/exec", denies), ""},
		{"changes of existing objects, without targets", rule("ConfigMap", strings.Replace(labels, "{patch", "{mutateExistingOnPolicyUpdate: true, patch", 1)), "spec.rules[0].mutate.mutateExistingOnPolicyUpdate"},
		{"for the whole policy", "  mutateExistingOnPolicyUpdate: true\n" + rule("ConfigMap", labels), "spec.mutateExistingOnPolicyUpdate"},
		{"not so", rule("ConfigMap", strings.Replace(labels, "{patch", "{mutateExistingOnPolicyUpdate: false, patch", 1)), ""},
		{"with targets", "  mutateExistingOnPolicyUpdate: true\n" + rule("ConfigMap", ofTargets), ""},
		{"a target in a rule without targets", rule("ConfigMap", strings.Replace(labels, "a: b", "a: '{{ target.metadata.name }}'", 1)), "spec.rules[0]: a variable reads target"},
		{"in a validation", rule("ConfigMap", strings.Replace(denies, "m,", "'{{target.metadata.name}}',", 1)), "spec.rules[0]: a variable reads target"},
		{"a context entry of that name", rule("ConfigMap", "context: [{name: target, variable: {value: {a: b}}}], "+strings.Replace(denies, "m,", "'{{ target.a }}',", 1)), ""},
		{"a member of that name", rule("ConfigMap", strings.Replace(denies, "m,", "'{{request.object.data.target}}',", 1)), ""},
		{"a target that chooses itself", rule("ConfigMap", strings.Replace(targets, "NAME", "{{target.metadata.name}}", 1)), "spec.rules[0].mutate.targets[0].name"},
		{"a precondition before there is a target", rule("ConfigMap", "preconditions: {all: [{key: '{{target.metadata.name}}', operator: Equals, value: a}]}, "+ofTargets), "spec.rules[0].preconditions"},
		{"images of all kinds", rule("'*'", "verifyImages: [{imageReferences: ['*'], attestors: [{entries: [{keyless: {issuer: 'https://a.example', subject: b}}]}]}]"), "spec.rules[0].match"},
		{"images of pods", rule("Pod", "verifyImages: [{imageReferences: ['*'], attestors: [{entries: [{keyless: {issuer: 'https://a.example', subject: b}}]}]}]"), ""},
		{"objects of all kinds", rule("'*'", denies), ""},
	} {
		_, err := newCompiler(t, nil).Compile([]byte(head+c.text), "test.yaml")
		switch {
		case c.path == "" && err != nil:
			t.Errorf("%s: %v", c.reason, err)
		case c.path != "" && (err == nil || !strings.Contains(err.Error(), c.path)):
			t.Errorf("%s: %v, want %s", c.reason, err, c.path)
		}
	}
}

// TestUndefinedFields: a field of a built-in kind is checked when the policy is loaded.
func TestUndefinedFields(t *testing.T) {
	const warned = "warning: spec.rules[0].validate.cel.expressions[0].expression: undefined field "
	for _, c := range []struct{ reason, kinds, expression, want string }{
		{"another version", "apps/v1beta9/Deployment", "object.spec.replicasss < 5", warned + `"object.spec.replicasss"`},
		{"a name that other groups use, too", "Service", "object.spec.template != null", ""},
		{"metadata of a custom kind", "example.com/v1/Widget", "object.metadata.lables != null", warned + `"object.metadata.lables"`},
		{"of a version, in which others have it", "v1/Service", "object.spec.template != null", ""},
		{"a field", "Deployment", "object.spec.replicas < 5", ""},
		{"none", "Deployment", "object.spec.replicasss < 5", `spec.rules[0].validate.cel.expressions[0].expression: undefined field "object.spec.replicasss"`},
		{"of a pod, which controllers follow", "Pod", "object.spec.hostNetwork != true", ""},
		{"none of a pod", "Pod", "object.spec.template.spec.hostNetwork != true", `undefined field "object.spec.template"`},
		{"a custom kind", "example.com/v1/Deployment", "object.spec.replicasss < 5", ""},
		{"kinds of which one is custom", "Deployment, example.com/v1/Widget", "object.spec.replicasss < 5", ""},
		{"a subresource of another kind", "Deployment/scale", "object.spec.replicas < 5", ""},
	} {
		text := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: a}\nspec:\n  rules: [{name: r, match: {any: [{resources: {kinds: [" + c.kinds + "]}}]}, validate: {cel: {expressions: [{expression: '" + c.expression + "'}]}}}]\n"
		p, err := newCompiler(t, nil).Compile([]byte(text), "test.yaml")
		if err == nil && len(p.Warnings) > 0 {
			err = errors.New("warning: " + strings.Join(p.Warnings, ", "))
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
}
