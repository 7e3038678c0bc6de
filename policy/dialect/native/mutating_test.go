package native_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy"
)

func label(name, value string) string {
	return fmt.Sprintf(`{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"%s": %s}}}'}}`, name, value)
}

// TestMutate: test/e2e compares more policies with the API server's results.
func TestMutate(t *testing.T) {
	const broken = "{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"remove\", path: \"/spec/gone\"}]'}}"
	const why = "JSON Patch: error in remove for path: '/spec/gone': Unable to remove nonexistent key: gone: missing value"
	for _, c := range []struct{ reason, spec, binding, result, message, object string }{
		{"a label", "  mutations: [" + label("a", `"b"`) + "]", "", "pass", "", `"labels":{"a":"b","app":"web"}`},
		{"each on the object of the previous one", "  mutations: [" + label("a", `"b"`) + ", " + label("c", "object.metadata.labels.a") + "]", "", "pass", "", `"labels":{"a":"b","app":"web","c":"b"}`},
		{"a list by its keys", "  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{containers: [Object.spec.containers{name: \"b\", image: \"c\"}]}}'}}]", "", "pass", "", `{"image":"c","name":"b"}`},
		{"an atomic list", "  mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{spec: Object.spec{containers: [Object.spec.containers{name: \"b\", args: [\"c\"]}]}}'}}]", "", "indeterminate", "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.containers[0].args", ""},
		{"a patch fails", "  mutations: [" + broken + "]", "", "indeterminate", why, ""},
		{"a patch fails, which is ignored", "  failurePolicy: Ignore\n  mutations: [" + label("a", `"b"`) + ", " + broken + ", " + label("c", `"d"`) + "]", "", "pass", why, `"labels":{"a":"b","app":"web","c":"d"}`},
		{"a test does not hold", "  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"test\", path: \"/kind\", value: \"Job\"}, JSONPatch{op: \"remove\", path: \"/spec\"}]'}}]", "", "pass", "", ""},
		{"the name is no member to change", "  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[JSONPatch{op: \"replace\", path: \"/metadata/name\", value: \"a\"}]'}}]", "", "indeterminate", "it changes name, by which the object is known", ""},
		{"a condition does not hold", "  matchConditions: [{name: a, expression: 'false'}]\n  mutations: [" + label("a", `"b"`) + "]", "", "skip", "", ""},
		{"each of the parameters", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  mutations: [" + label("most", "params.data.most") + "]", "  paramRef: {namespace: params, selector: {matchLabels: {limits: 'yes'}}, parameterNotFoundAction: Deny}", "pass", "", `"most":"1"`},
		{"no parameter", "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  mutations: [" + label("most", "params.data.most") + "]", "  paramRef: {name: gone, parameterNotFoundAction: Deny}", "indeterminate", "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction", ""},
		{"what is not known", "  mutations: [" + label("user", "request.userInfo.username") + "]", "", "indeterminate", "request.userInfo.username is not known here", ""},
		{"what is not known is not ignored", "  failurePolicy: Ignore\n  mutations: [" + label("user", "request.userInfo.username") + "]", "", "indeterminate", "request.userInfo.username is not known here", ""},
		{"a binding for other objects", "  mutations: [" + label("a", `"b"`) + "]", "  matchResources: {objectSelector: {matchLabels: {app: db}}}", "", "", ""},
	} {
		results, object := mutate(t, pod(), compile(t, mutating(c.spec, c.binding)))
		result, message := "", ""
		for _, r := range results {
			result = string(r.Ruling.Result)
			if r.Skip != "" {
				result = "skip"
			}
			for _, reason := range r.Ruling.Reasons {
				message += reason.Message
			}
		}
		if result != c.result || message != c.message || !strings.Contains(object, c.object) || (object == "") != (c.object == "") {
			t.Errorf("%s: %q %q %s", c.reason, result, message, object)
		}
	}
}

// TestReinvocation: a policy with IfNeeded is evaluated once more, if it applied and something changed.
func TestReinvocation(t *testing.T) {
	named := func(name, policy, spec string) string {
		return strings.NewReplacer("name: test}", "name: "+name+"}", "policyName: test", "policyName: "+name, "reinvocationPolicy: Never", "reinvocationPolicy: "+policy).Replace(mutating(spec, ""))
	}
	copies := "  mutations: [" + label("copy", "has(object.metadata.labels.later) ? object.metadata.labels.later : \"none\"") + "]"
	later := "  mutations: [" + label("later", `"made"`) + "]"
	for _, c := range []struct{ reason, policy, want string }{
		{"if needed", "IfNeeded", `"copy":"made"`},
		{"never", "Never", `"copy":"none"`},
	} {
		results, object := mutate(t, pod(), compile(t, named("a", c.policy, copies)), compile(t, named("b", "Never", later)))
		if len(results) != 2 || !results[0].Changed || !strings.Contains(object, c.want) || !strings.Contains(object, `"later":"made"`) {
			t.Errorf("%s: %+v %s", c.reason, results, object)
		}
	}
}

// TestOrder: the API server evaluates its own policies before webhooks do theirs.
func TestOrder(t *testing.T) {
	ours := compile(t, mutating("  mutations: ["+label("seen", "string(has(object.metadata.labels.late))")+"]", ""))
	late := &policy.Policy{Kind: "ClusterPolicy", Name: "a", ObjectRules: policy.ObjectRules{Mutations: compile(t, mutating("  mutations: ["+label("late", `"yes"`)+"]", "")).Mutations}}
	if _, object := mutate(t, pod(), late, ours); !strings.Contains(object, `"seen":"false"`) || !strings.Contains(object, `"late":"yes"`) {
		t.Error(object)
	}
}
