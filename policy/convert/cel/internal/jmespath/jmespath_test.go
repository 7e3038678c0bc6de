package jmespath_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/jmespath"
	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/shape"
	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel"
	types "github.com/quaymaster/quaymaster/policy/internal/schema"
	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
	source "github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// scopeOf is the scope of a rule about pods, at a creation or an update.
func scopeOf(t testing.TB, kinds ...schema.GroupVersionKind) jmespath.Scope {
	t.Helper()
	found, known := types.NewFinder().Types(kinds)
	if !known {
		t.Fatal("no type")
	}
	return jmespath.Scope{Object: shape.Of(found), Operations: []string{"CREATE", "UPDATE"}}
}

func pod() schema.GroupVersionKind { return schema.GroupVersionKind{Version: "v1", Kind: "Pod"} }

// sides evaluates expressions of both languages.
type sides struct {
	engine *source.Engine
	env    *cel.Env
	// results are compiled expressions of CEL, sources templates of the source.
	results map[string]func(request map[string]any) (any, error)
	sources map[string]*variable.Template
}

func newSides(t testing.TB) sides {
	t.Helper()
	engine, err := source.New(source.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		t.Fatal(err)
	}
	env, err := cel.NewEnv(cel.Options{Variables: kyvernocel.OfObject()})
	if err != nil {
		t.Fatal(err)
	}
	return sides{engine, env, map[string]func(map[string]any) (any, error){}, map[string]*variable.Template{}}
}

// source evaluates {{ expression }}.
func (s sides) source(t testing.TB, text string, request map[string]any) (any, error) {
	t.Helper()
	if s.sources[text] == nil {
		template, err := variable.Compile(s.engine, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		s.sources[text] = template
	}
	return s.sources[text].Execute(variable.Context{"request": request})
}

// result evaluates an expression of CEL.
func (s sides) result(t testing.TB, text string, request map[string]any) (any, error) {
	t.Helper()
	if s.results[text] == nil {
		s.results[text] = s.compiled(t, text)
	}
	return s.results[text](request)
}

func (s sides) compiled(t testing.TB, text string) func(request map[string]any) (any, error) {
	t.Helper()
	scope, err := s.env.NewScope()
	if err != nil {
		t.Fatal(err)
	}
	program, err := scope.Compile("test", "{'value': dyn("+text+")}")
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return func(request map[string]any) (any, error) {
		value, err := program.Eval(context.Background(), scope.NewActivation(cel.Inputs{Variables: map[string]any{
			"object": request["object"], "oldObject": request["oldObject"], "request": request,
		}}))
		if err != nil {
			return nil, err
		}
		native, err := library.Native(value)
		out, ok := native.(map[string]any)
		if err != nil || !ok {
			t.Fatalf("%s: %T, %v", text, native, err)
		}
		return out["value"], nil
	}
}

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// same compares decoded JSON.
func same(a, b any) bool {
	var x, y any
	first, err1 := json.Marshal(a)
	second, err2 := json.Marshal(b)
	if err1 != nil || err2 != nil || json.Unmarshal(first, &x) != nil || json.Unmarshal(second, &y) != nil {
		return false
	}
	return reflect.DeepEqual(x, y)
}

// sorted is a list of texts in their order.
func sorted(v any) any {
	list, _ := v.([]any)
	slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return v
}

var pods = []string{
	"{spec: {containers: [{name: a, image: a}]}}",
	"{spec: {hostNetwork: true, nodeName: node, priority: 5, containers: [{name: a, image: 'a:1', ports: [{containerPort: 1, hostPort: 80}, {containerPort: 2}]}]}}",
	"{metadata: {labels: {CREATE: v}, annotations: {a/CREATE: x}}, spec: {volumes: [], containers: [{name: a, image: b, resources: {limits: {memory: 1Gi}}}, {name: b, image: a, resources: {limits: {memory: 1Gi}, requests: {memory: 1Gi}}}]}}",
	"{metadata: {labels: {app: a}, annotations: {'x.y/z': v}}, spec: {nodeSelector: {a: b}, initContainers: [{name: i, image: i, securityContext: {capabilities: {add: [x, Y], drop: [all]}}}], containers: [{name: a, image: a}], volumes: [{name: v, hostPath: {path: /a}}]}}",
	"{metadata: {labels: {app: ''}, annotations: {}, ownerReferences: [{kind: Job}]}, spec: {containers: [{name: a, image: a, livenessProbe: {}, securityContext: {capabilities: {add: []}}}], volumes: [{name: v, secret: {secretName: s}}, {name: w, configMap: {}}]}}",
}

// TestCompile has the form of each construct, and evaluates both sides.
func TestCompile(t *testing.T) {
	s := newSides(t)
	for _, c := range []struct{ reason, text, want string }{
		{"a field that every pod has", "request.object.metadata.name", "object.metadata.name"},
		{"a field that may be missing", "request.object.spec.nodeName", "object.spec.nodeName"},
		{"with a default", "request.object.spec.nodeName || ''", "object.spec.?nodeName.orValue('')"},
		{"with another default", "request.object.spec.nodeName || 'none'", "object.spec.?nodeName.orValue('none')"},
		{"a label, which may be empty", "request.object.metadata.labels.app || 'none'",
			"object.metadata.?labels.?app.orValue('') != '' ? object.metadata.labels.app : 'none'"},
		{"a key in quotes", `request.object.metadata.annotations."x.y/z" || ''`, "object.metadata.?annotations[?'x.y/z'].orValue('')"},
		{"a boolean", "request.object.spec.hostNetwork || `false`", "object.spec.?hostNetwork.orValue(false)"},
		{"the operation, which is always there", "request.operation || 'BACKGROUND'", "request.operation"},
		{"an index", "request.object.spec.containers[0].image", "object.spec.containers[0].image"},
		{"the length of a list", "length(request.object.spec.containers)", "object.spec.containers.size()"},
		{"of a list that may be missing", "request.object.spec.volumes || `[]` | length(@)", "object.spec.?volumes.orValue([]).size()"},
		{"a projection", "request.object.spec.containers[].image", "object.spec.containers.map(container, container.image)"},
		{"a projection of lists", "request.object.spec.containers[].ports[].hostPort",
			"object.spec.containers.map(container, container.?ports.orValue([]).map(port, has(port.hostPort), port.hostPort)).flatten()"},
		{"several lists", "request.object.spec.[initContainers, containers][].name",
			"(object.spec.?initContainers.orValue([]) + object.spec.containers).map(container, container.name)"},
		{"a filter", "request.object.spec.containers[?name == 'a'].image",
			"object.spec.containers.map(container, container.name == 'a', container.image)"},
		{"a comparison of two fields", "request.object.spec.containers[?resources.requests.memory != resources.limits.memory] | length(@)",
			"object.spec.containers.filter(container, container.?resources.?requests.?memory != container.?resources.?limits.?memory).size()"},
		{"the names of members", "request.object.spec.volumes[].keys(@)[] || ''", "object.spec.?volumes.orValue([]).map(volume, volume.map(key, key)).flatten()"},
		{"a name among them", "request.object.metadata.keys(@) | contains(@, 'ownerReferences')", "'ownerReferences' in object.metadata"},
		{"letters", "request.object.spec.containers[].to_upper(name)", ""},
		{"a text within", "request.object.metadata.labels.app == 'a' && request.object.spec.hostNetwork", ""},
		{"not", "!(request.object.spec.hostNetwork)", "!object.spec.?hostNetwork.orValue(false)"},
		{"an order", "request.object.spec.priority > `3`", "object.spec.priority > 3"},
		{"a nested variable", "starts_with('{{ request.object.spec.containers[0].image }}', 'a:')", "object.spec.containers[0].image.startsWith('a:')"},
		{"a variable as a key", `request.object.metadata.labels."{{ request.operation }}" || ''`, "object.metadata.?labels[?request.operation].orValue('')"},
		{"a variable within a key", `request.object.metadata.annotations."a/{{ request.operation }}"`, "object.metadata.annotations['a/' + request.operation]"},
		{"an expression for texts", "regex_match('^a[:].$', request.object.spec.containers[0].image)", "object.spec.containers[0].image.matches('^a[:].$')"},
	} {
		made, err := jmespath.Compile(c.text, scopeOf(t, pod()))
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if c.want != "" && made.Text != c.want {
			t.Errorf("%s: %s\nwant %s", c.reason, made.Text, c.want)
		}
		for _, text := range pods {
			one := object(t, text)
			if one["metadata"] == nil {
				one["metadata"] = map[string]any{}
			}
			one["metadata"].(map[string]any)["name"] = "n"
			request := map[string]any{"operation": "CREATE", "object": one}
			want, wantErr := s.source(t, "{{ "+c.text+" }}", request)
			got, gotErr := s.result(t, made.Text, request)
			if (wantErr == nil) != (gotErr == nil) && (wantErr != nil || want != nil || !made.Optional) {
				t.Errorf("%s: %s of %s: %v (%v), was %v (%v)", c.reason, made.Text, text, got, gotErr, want, wantErr)
				continue
			}
			empty := strings.Contains(c.text, "|| ''") && same(want, "") // an empty list is the empty text there
			if strings.Contains(c.text, "keys(") {                       // in any order
				want, got = sorted(want), sorted(got)
			}
			if wantErr == nil && gotErr == nil && !same(want, got) && (!empty || !same(got, []any{})) {
				t.Errorf("%s: %s of %s: %v, was %v", c.reason, made.Text, text, got, want)
			}
		}
	}
}

// TestKeysRefused: a variable in a key is refused where the source could read another expression than the result.
func TestKeysRefused(t *testing.T) {
	for reason, text := range map[string]string{
		"a key that may be missing":          `request.object.metadata.labels."{{ request.object.metadata.labels.app }}"`,
		"a text that may have quotes":        `request.object.metadata.labels."{{ request.object.spec.containers[0].image }}" || ''`,
		"a field, where the type has others": `request.object.spec."{{ request.operation }}" || ''`,
		"a variable":                         `"{{ request.operation }}".metadata.name`,
	} {
		if made, err := jmespath.Compile(text, scopeOf(t, pod())); err == nil {
			t.Errorf("%s: %s", reason, made.Text)
		}
	}
}
