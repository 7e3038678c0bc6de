package facts_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/convert/equality/internal/facts"
)

func read(t *testing.T, spec string) *facts.Facts {
	t.Helper()
	var document map[string]any
	if err := yaml.Unmarshal([]byte("spec:\n  "+strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")), &document); err != nil {
		t.Fatal(err)
	}
	f := facts.New()
	f.Read(document)
	return f
}

// TestPaths finds the paths that each form of a policy reads; the other paths are those of every policy.
func TestPaths(t *testing.T) {
	for _, row := range []struct{ reason, spec, want string }{
		{"a pattern with anchors", "pattern: {spec: {=(hostNetwork): false, containers: [{(name): a, X(image): b}]}}", "spec.hostNetwork spec.containers spec.containers.[].name spec.containers.[].image"},
		{"the key of a condition", "conditions: [{key: '{{ request.object.spec.type || `\"x\"` }}', operator: Equals, value: a}]", "spec.type"},
		{"what a cleanup policy deletes", "conditions: [{key: '{{ target.data.state }}', operator: Equals, value: done}]", "data.state"},
		{"a projection", "message: '{{ request.object.spec.containers[].image }}'", "spec.containers.[].image"},
		{"CEL", "validations: [{expression: \"object.spec.?containers.orValue([]).all(c, c.name != '')\"}]", "spec.containers.[].name"},
		{"a condition of a match", "matchConditions: [{name: a, expression: 'object.metadata.labels.tier == \"x\"'}]", "metadata.labels.tier"},
		{"a variable of CEL", "variables: [{name: all, expression: object.spec.containers}]\nvalidations: [{expression: 'variables.all.all(c, c.tty)'}]", "spec.containers.[].tty"},
		{"a foreach", "foreach: [{list: 'request.object.spec.volumes', pattern: {name: a}}]", "spec.volumes.[].name"},
		{"a patch that adds", "patchStrategicMerge: {metadata: {annotations: {+(a): b}}}", "metadata.annotations.a"},
		{"a JSON patch", "patchesJson6902: |-\n  - {op: add, path: /spec/containers/{{ elementIndex }}/tty, value: true}\n  - {op: remove, path: \"/spec/a~1b\"}", "spec.containers.[].tty spec.a/b"},
		{"a JSON patch in CEL", `mutations: [{jsonPatch: {expression: '[JSONPatch{op: "add", path: "/spec/paused", value: true}]'}}]`, "spec.paused"},
		{"a configuration in CEL", "mutations: [{applyConfiguration: {expression: 'Object{spec: Object.spec{replicas: object.spec.replicas}}'}}]", "spec.replicas"},
		{"a sentence with an apostrophe", "message: \"{{ request.object.spec.a }} doesn't\"", "spec.a"},
		{"a foreach over flattened lists", "foreach: [{list: 'request.object.spec.[a, b][]', pattern: {name: x}}]", "spec.a.[].name spec.b.[].name"},
		{"members of a list of paths", "validations: [{expression: \"[object.spec.a, object.spec.b].all(x, x.name != '')\"}]", "spec.a.name spec.b.name"},
		{"images", "conditions: [{key: '{{ images.containers.*.registry }}', operator: AnyIn, value: [a]}]", "spec.containers.[].image"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			f := read(t, row.spec)
			for want := range strings.FieldsSeq(row.want) {
				if p := facts.Path(strings.Split(want, ".")); f.Paths[p.Key()] == nil {
					t.Errorf("%s is not in %q", want, f.Paths)
				}
			}
		})
	}
}

// TestExact has values that paths compare with, and none of lengths.
func TestExact(t *testing.T) {
	for _, row := range []struct {
		reason, spec, path string
		want               any
		isNear             bool // and no more
	}{
		{"a pattern", "pattern: {spec: {type: a}}", "spec.type", "a", false},
		{"a condition", "conditions: [{key: '{{ request.object.spec.type }}', operator: Equals, value: a}]", "spec.type", "a", false},
		{"a value that is in a list", "conditions: [{key: a, operator: AnyIn, value: '{{ request.object.spec.types }}'}]", "spec.types", "a", false},
		{"CEL", "validations: [{expression: \"object.spec.other == 'b' && object.spec.type == 'a'\"}]", "spec.type", "a", false},
		{"the value of another path", "validations: [{expression: \"object.spec.type == 'b' && object.spec.other == 'a'\"}]", "spec.type", "a", true},
		{"a text that is in a list of CEL", "validations: [{expression: \"'a' in object.spec.types\"}]", "spec.types", "a", false},
		{"a length", "conditions: [{key: '{{ length(request.object.spec.types) }}', operator: Equals, value: 3}]", "spec.types", float64(3), true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			f := read(t, row.spec)
			key := facts.Path(strings.Split(row.path, ".")).Key()
			is := func(in map[string]any) bool {
				for _, v := range in {
					if v == row.want {
						return true
					}
				}
				return false
			}
			if is(f.Exact[key]) == row.isNear || row.isNear && !is(f.Near[key]) {
				t.Errorf("%v, near it %v", f.Exact[key], f.Near[key])
			}
		})
	}
}

// TestLookups finds the objects that policies read besides that of the request, and the paths in them.
func TestLookups(t *testing.T) {
	for _, row := range []struct {
		reason, spec string
		want         facts.Lookup
		path         string
	}{
		{"a ConfigMap", "context: [{name: c, configMap: {name: a, namespace: b}}]\nkey: '{{ c.data.open }}'", facts.Lookup{Version: "v1", Kind: "ConfigMap", Name: "a", Namespace: "b", Key: facts.Of + "c"}, "data.open"},
		{"a ConfigMap with a variable", "context: [{name: c, configMap: {name: 'a-{{ request.namespace }}', namespace: b}}]", facts.Lookup{Version: "v1", Kind: "ConfigMap", Namespace: "b", Key: facts.Of + "c"}, ""},
		{"an object", "context: [{name: c, apiCall: {urlPath: /apis/apps/v1/namespaces/b/deployments/a, jmesPath: spec.replicas}}]", facts.Lookup{Group: "apps", Version: "v1", Resource: "deployments", Name: "a", Namespace: "b", Key: facts.Of + "c"}, "spec.replicas"},
		{"a list", "context: [{name: c, apiCall: {urlPath: '/api/v1/namespaces/{{ request.namespace }}/services', jmesPath: 'items[?spec.type == `x`]'}}]", facts.Lookup{Version: "v1", Resource: "services", Key: facts.Of + "c"}, "items.[].spec.type"},
		{"a list in CEL", "variables: [{name: c, expression: \"resource.List('apps/v1', 'deployments', 'b')\"}]", facts.Lookup{Group: "apps", Version: "v1", Resource: "deployments", Key: facts.Of + "c"}, ""},
		{"an object in CEL", "variables: [{name: c, expression: \"resource.Get('v1', 'services', 'b', 'a')\"}]", facts.Lookup{Version: "v1", Resource: "services", Key: facts.Of + "c"}, ""},
		{"a target", "mutate: {targets: [{apiVersion: v1, kind: Secret, name: a, namespace: b}]}", facts.Lookup{Version: "v1", Kind: "Secret", Name: "a", Namespace: "b"}, ""},
		{"a source of copies", "generate: {apiVersion: v1, kind: Secret, clone: {name: a, namespace: b}}", facts.Lookup{Version: "v1", Kind: "Secret", Name: "a", Namespace: "b"}, ""},
		{"sources of copies", "generate: {cloneList: {namespace: b, kinds: [v1/Secret, apps/v1/Deployment]}}", facts.Lookup{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "b"}, ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			f := read(t, row.spec)
			if !slices.Contains(f.Lookups, row.want) {
				t.Errorf("%+v", f.Lookups)
			}
			if p := append(facts.Path{row.want.Key}, strings.Split(row.path, ".")...); row.path != "" && f.Paths[p.Key()] == nil {
				t.Errorf("%q is not in %q", p, f.Paths)
			}
		})
	}
	for _, path := range []string{"", "/api", "/healthz", "/apis/apps/v1"} {
		if of, ok := facts.Requested(path); ok {
			t.Errorf("%q is %+v", path, of)
		}
	}
}

// TestCircumstances finds users and namespaces.
func TestCircumstances(t *testing.T) {
	f := read(t, "match: {any: [{resources: {namespaces: [a-*]}, subjects: [{kind: User, name: ann}]}]}\nkey: '{{ request.userInfo.username }}'\nvalue: bob\nother: \"request.namespace == 'shop' && 'x' in request.userInfo.groups\"")
	for _, row := range []struct {
		of   map[string]bool
		want []string
	}{{f.Namespaces, []string{"a-*", "shop"}}, {f.Users, []string{"ann", "bob", "x"}}} {
		for _, want := range row.want {
			if !row.of[want] {
				t.Errorf("%s is not in %v", want, row.of)
			}
		}
	}
}

// TestAround has the values next to those that policies compare.
func TestAround(t *testing.T) {
	f := read(t, "pattern: {spec: {replicas: '>2', size: 1Gi, name: 'a*b'}}")
	candidates := f.Candidates(nil)
	for _, want := range []any{facts.Absent{}, nil, "", float64(1), float64(2), float64(3), "1Gi", "2Gi", "ab", "axyb", "axybx"} {
		if !slices.ContainsFunc(candidates, func(v any) bool { return reflect.DeepEqual(v, want) }) {
			t.Errorf("%#v is not in %v", want, candidates)
		}
	}
}
