package condition_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	celgo "github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/condition"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	types "github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	source "github.com/quaymaster/quaymaster/policy/lang/condition"
	engine "github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func scopeOf(t testing.TB, kinds ...schema.GroupVersionKind) jmespath.Scope {
	t.Helper()
	found, known := types.NewFinder().Types(kinds)
	if !known {
		t.Fatal("no type")
	}
	return jmespath.Scope{Object: shape.Of(found), Operations: []string{"CREATE", "UPDATE"}}
}

func decoded(t testing.TB, text string) any {
	t.Helper()
	var out any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// The results of conditions.
const (
	holds, fails, unsure, failed = "holds", "does not hold", "is indeterminate", "fails"
)

// ofSource evaluates conditions of the source.
func ofSource(t testing.TB, compile source.Compiler, conditions any, request map[string]any) string {
	t.Helper()
	e, err := engine.New(engine.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	compiled, err := compile(e, conditions)
	if err != nil {
		t.Fatal(err)
	}
	found, err := compiled.Evaluate(variable.Context{"request": request})
	switch {
	case err != nil:
		return failed
	case found.Indeterminate:
		return unsure
	case found.Held:
		return holds
	}
	return fails
}

func envOf(t testing.TB) *cel.Env {
	t.Helper()
	env, err := cel.NewEnv(cel.Options{Variables: kyvernocel.OfObject()})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// ofResult evaluates a condition of CEL.
func ofResult(t testing.TB, env *cel.Env, text string, request map[string]any) string {
	t.Helper()
	scope, err := env.NewScope()
	if err != nil {
		t.Fatal(err)
	}
	program, err := scope.Compile("test", text, celgo.BoolType, celgo.DynType)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	is, err := program.Bool(context.Background(), scope.NewActivation(cel.Inputs{Now: time.Now, Variables: map[string]any{
		"object": request["object"], "oldObject": request["oldObject"], "request": request,
	}}))
	switch {
	case err != nil:
		return failed
	case is:
		return holds
	}
	return fails
}

var pods = []string{
	"{spec: {containers: [{name: a, image: a}]}}",
	"{spec: {hostNetwork: true, nodeName: node, priority: 5, containers: [{name: a, image: 'a:1', ports: [{containerPort: 1, hostPort: 80}, {containerPort: 2}]}]}}",
	"{spec: {nodeName: 'n*', priority: 1, containers: [{name: a, image: 'a:1', ports: [{containerPort: 1, hostPort: 5500}], securityContext: {capabilities: {add: ['NET_*', x]}}}]}}",
	"{spec: {containers: [{name: a, image: b, resources: {limits: {memory: 1Gi}}}, {name: b, image: 'reg/*', resources: {limits: {memory: 1Gi}, requests: {memory: 1024Mi}}}]}}",
	"{metadata: {annotations: {made: '2020-01-01T00:00:00Z'}}, spec: {containers: [{name: a, image: a}]}}",
	"{metadata: {annotations: {made: '2200-01-01T00:00:00Z'}}, spec: {containers: [{name: a, image: a}]}}",
	"{metadata: {annotations: {made: yesterday}}, spec: {containers: [{name: a, image: a}]}}",
	"{metadata: {labels: {app: a}, annotations: {'x.y/z': v}}, spec: {initContainers: [{name: i, image: i, securityContext: {capabilities: {add: [NET_BIND_SERVICE, Y], drop: [all]}}}], containers: [{name: a, image: a}], volumes: [{name: v, hostPath: {path: /a}}]}}",
	"{metadata: {labels: {app: ''}, annotations: {'x.y/z': '*'}, ownerReferences: [{kind: Job}]}, spec: {containers: [{name: a, image: a, livenessProbe: {}, securityContext: {capabilities: {add: [NET_BIND_SERVICE]}}}], volumes: [{name: v, secret: {secretName: s}}, {name: w, configMap: {}}]}}",
}

// TestConditions evaluates both forms of each condition for a denial and for an evaluation.
func TestConditions(t *testing.T) {
	env := envOf(t)
	for _, c := range []struct{ reason, conditions, want string }{
		{"the operation", "{all: [{key: \"{{ request.operation || 'BACKGROUND' }}\", operator: NotEquals, value: DELETE}]}", "request.operation == 'DELETE'"},
		{"one of several", "{all: [{key: '{{ request.operation }}', operator: AnyIn, value: [CREATE, UPDATE]}]}", "!(request.operation in ['CREATE', 'UPDATE'])"},
		{"a text that may be missing", "{any: [{key: '{{ request.object.spec.nodeName }}', operator: Equals, value: node}]}", ""},
		{"a default", "{any: [{key: \"{{ request.object.metadata.labels.app || '' }}\", operator: Equals, value: ''}]}", "object.metadata.?labels.?app.orValue('') != ''"},
		{"a wildcard", "{any: [{key: \"{{ request.object.metadata.labels.app || '' }}\", operator: Equals, value: '?*'}]}", "object.metadata.?labels.?app.orValue('') == ''"},
		{"not a wildcard", "{any: [{key: \"{{ request.object.spec.containers[0].image }}\", operator: NotEquals, value: 'a*'}]}", "object.spec.containers[0].image.startsWith('a')"},
		{"a boolean", "{any: [{key: '{{ request.object.spec.hostNetwork || `false` }}', operator: Equals, value: true}]}", "!object.spec.?hostNetwork.orValue(false)"},
		{"a number", "{all: [{key: '{{ request.object.spec.priority || `0` }}', operator: GreaterThan, value: 3}]}", "object.spec.?priority.orValue(0) <= 3"},
		{"a number that may be missing", "{all: [{key: '{{ request.object.spec.priority }}', operator: GreaterThan, value: '3'}]}", "object.spec.priority <= 3"},
		{"a length", "{any: [{key: '{{ length(request.object.spec.containers) }}', operator: NotEquals, value: 1}]}", "object.spec.containers.size() == 1"},
		{"a list of texts", "{all: [{key: '{{ request.object.spec.[ephemeralContainers, initContainers, containers][].securityContext.capabilities.add[] }}', operator: AnyNotIn, value: [NET_BIND_SERVICE, x]}]}",
			"(object.spec.?ephemeralContainers.orValue([]) + object.spec.?initContainers.orValue([]) + object.spec.containers).all(container, " +
				"container.?securityContext.?capabilities.?add.orValue([]).all(item, item in ['NET_BIND_SERVICE', 'x']))"},
		{"all of a list", "{all: [{key: '{{ request.object.spec.containers[].image }}', operator: AllNotIn, value: [a, b]}]}", ""},
		{"any of a list", "{all: [{key: '{{ request.object.spec.containers[].image }}', operator: AnyIn, value: ['a*', reg/x]}]}", ""},
		{"a range", "{all: [{key: '{{ request.object.spec.containers[].ports[].hostPort }}', operator: AnyNotIn, value: 5000-6000}, " +
			"{key: '{{ request.object.spec.containers[].ports[].hostPort }}', operator: AnyNotIn, value: [0]}]}", ""},
		{"the names of members", "{all: [{key: \"{{ request.object.spec.volumes[].keys(@)[] || '' }}\", operator: AnyNotIn, value: [name, configMap, '']}]}",
			"object.spec.?volumes.orValue([]).all(volume, volume.all(key, key in ['name', 'configMap', '']))"},
		{"without the empty text", "{all: [{key: \"{{ request.object.spec.volumes[].keys(@)[] || '' }}\", operator: AnyNotIn, value: [name, configMap]}]}", ""},
		{"a name that is missing", "{any: [{key: ownerReferences, operator: AnyNotIn, value: '{{request.object.metadata.keys(@)}}'}]}", "has(object.metadata.ownerReferences)"},
		{"a name that is there", "{any: [{key: ownerReferences, operator: AnyIn, value: '{{request.object.metadata.keys(@)}}'}]}", "!has(object.metadata.ownerReferences)"},
		{"a text in a list", "{any: [{key: ALL, operator: AnyNotIn, value: '{{ request.object.spec.initContainers[].securityContext.capabilities.drop[].to_upper(@) || `[]` }}'}]}", ""},
		{"a list that may be missing", "{any: [{key: all, operator: AnyNotIn, value: '{{ request.object.spec.initContainers[].securityContext.capabilities.drop[] }}'}]}", ""},
		{"a text in a list that may be missing", "{any: [{key: all, operator: AnyIn, value: '{{ request.object.spec.initContainers[].securityContext.capabilities.drop[] }}'}]}", ""},
		{"an error decides first", "{all: [{key: '{{ request.object.spec.nodeName }}', operator: Equals, value: node}, {key: '{{ request.operation }}', operator: Equals, value: UPDATE}]}", ""},
		{"an error in any decides first", "{any: [{key: '{{ request.object.spec.nodeName }}', operator: Equals, value: node}, {key: '{{ request.operation }}', operator: Equals, value: CREATE}]}", ""},
		{"any and all", "{any: [{key: '{{ request.operation }}', operator: Equals, value: CREATE}], all: [{key: '{{ request.operation }}', operator: NotEquals, value: DELETE}]}", ""},
		{"the old form", "[{key: '{{ request.operation }}', operator: In, value: [CREATE]}]", "request.operation != 'CREATE'"},
		{"a quantity", "{any: [{key: \"{{ request.object.spec.containers[0].resources.limits.memory || '0' }}\", operator: GreaterThan, value: 512Mi}]}",
			"quantity(object.spec.containers[0].?resources.?limits.?memory.orValue('0')).compareTo(quantity('512Mi')) <= 0"},
		{"a time", "{any: [{key: \"{{ time_since('', '{{ request.object.metadata.annotations.made }}', '') }}\", operator: GreaterThan, value: 24h}]}",
			"time.now() - timestamp(object.metadata.annotations.made) <= duration('24h')"},
		{"a filter", "{any: [{key: '{{ request.object.spec.containers[?resources.requests.memory!=resources.limits.memory] | length(@) }}', operator: NotEquals, value: 0}]}", ""},
	} {
		conditions := decoded(t, c.conditions)
		admits, _, err := condition.CompileDeny(conditions, scopeOf(t, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}))
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		demands, err := condition.CompileDemanding(conditions, scopeOf(t, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}))
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if c.want != "" && admits.Text != c.want {
			t.Errorf("%s: %s\nwant %s", c.reason, admits.Text, c.want)
		}
		for _, text := range pods {
			one := decoded(t, text).(map[string]any)
			if one["metadata"] == nil {
				one["metadata"] = map[string]any{}
			}
			one["metadata"].(map[string]any)["name"] = "n"
			request := map[string]any{"operation": "CREATE", "object": one}
			want := ofSource(t, source.CompileDeny, conditions, request)
			got := map[string]string{holds: fails, fails: holds, failed: failed}[ofResult(t, env, admits.Text, request)]
			if got != want && (want != unsure || got == fails) {
				t.Errorf("%s: deny %s\nof %s: %s, was %s", c.reason, admits.Text, text, got, want)
			}
			want, got = ofSource(t, source.CompileDemanding, conditions, request), ofResult(t, env, demands.Text, request)
			if got != want && (want != unsure || got == fails) {
				t.Errorf("%s: demand %s\nof %s: %s, was %s", c.reason, demands.Text, text, got, want)
			}
		}
	}
}
