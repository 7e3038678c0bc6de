package mutate_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/quaymaster/quaymaster/policy"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/mutate"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rule"
	"github.com/quaymaster/quaymaster/policy/dialect/kyverno/rulecontext"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func options(tb testing.TB) rule.Options {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		tb.Fatal(err)
	}
	return rule.Options{Context: rulecontext.Options{Engine: engine}, OldForm: true}
}

func compile(tb testing.TB, body string) (*mutate.Rule, error) {
	tb.Helper()
	text := "{name: r, match: {any: [{resources: {kinds: [Pod]}}]}, " + body + "}"
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return mutate.Compile(options(tb), json.RawMessage(raw), "spec.rules[0]")
}

func object(tb testing.TB, text string) map[string]any {
	tb.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		tb.Fatal(err)
	}
	return out
}

const pod = "{apiVersion: v1, kind: Pod, metadata: {name: web, labels: {team: a}}, spec: {containers: [{name: a, image: 'x:v1'}, {name: b, image: 'y:v1'}]}}"

func subject(tb testing.TB) *policy.Subject {
	tb.Helper()
	return &policy.Subject{Version: "v1", Kind: "Pod", Namespace: "prod", Name: "web", Operation: "CREATE", Object: policy.ContentOf(object(tb, pod))}
}

func TestMutate(t *testing.T) {
	const list = "list: request.object.spec.containers"
	labels := func(more string) string { return strings.Replace(pod, "{team: a}", "{team: a"+more+"}", 1) }
	images := func(a, b string) string {
		return strings.NewReplacer("'x:v1'", "'"+a+"'", "'y:v1'", "'"+b+"'").Replace(pod)
	}
	for _, c := range []struct {
		body   string
		want   string // the object; "" for none
		result policy.Result
		says   string
		reason string
	}{
		{"mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}", labels(", a: b"), policy.Pass, "", "a merge"},
		{"mutate: {patchStrategicMerge: {metadata: {labels: {ns: '{{request.namespace}}'}}}}", labels(", ns: prod"), policy.Pass, "", "a variable in a merge"},
		{"mutate: {patchStrategicMerge: {metadata: {labels: {+(team): x}}}}", "", policy.Skipped, "no patches applied", "nothing to add"},
		{"mutate: {patchStrategicMerge: {metadata: {labels: {(team): x}, annotations: {a: b}}}}", "", policy.Skipped, "", "an anchor that leaves the object alone"},
		{"mutate: {patchStrategicMerge: {metadata: {labels: {x: '{{request.object.none}}'}}}}", "", policy.Indeterminate, "mutate.patchStrategicMerge: ", "a variable that is not there"},
		{"mutate: {patchesJson6902: '[{op: add, path: /metadata/labels/a, value: b}]'}", labels(", a: b"), policy.Pass, "", "a JSON patch"},
		{"mutate: {patchesJson6902: '[{op: test, path: /metadata/labels/team, value: other}]'}", "", policy.Indeterminate, "mutate.patchesJson6902: ", "a test that fails"},

		{"mutate: {foreach: [{" + list + ", patchStrategicMerge: {spec: {containers: [{(name): '{{element.name}}', image: 'mirror/{{element.image}}'}]}}}]}", images("mirror/x:v1", "mirror/y:v1"), policy.Pass, "", "a merge for each element"},
		{"mutate: {foreach: [{" + list + ", patchesJson6902: '[{op: replace, path: \"/spec/containers/{{elementIndex}}/image\", value: \"{{elementIndex}}/{{element.image}}\"}]'}]}", images("0/x:v1", "1/y:v1"), policy.Pass, "", "a JSON patch for each element"},
		{"mutate: {foreach: [{" + list + ", preconditions: {all: [{key: '{{element.name}}', operator: Equals, value: b}]}, patchesJson6902: '[{op: replace, path: \"/spec/containers/{{elementIndex}}/image\", value: z}]'}]}", images("x:v1", "z"), policy.Pass, "", "for one element"},
		{"mutate: {foreach: [{" + list + ", preconditions: {all: [{key: '{{element.name}}', operator: Equals, value: c}]}, patchesJson6902: '[{op: remove, path: /spec}]'}]}", "", policy.Skipped, "no patches applied", "for no element"},
		{"mutate: {foreach: [{" + list + ", preconditions: {all: [{key: '{{element.none}}', operator: Equals, value: c}]}, patchesJson6902: '[{op: remove, path: /spec}]'}]}", "", policy.Indeterminate, "preconditions: ", "a precondition that cannot be evaluated"},
		{"mutate: {foreach: [{" + list + ", context: [{name: im, variable: {jmesPath: 'to_upper(element.image)'}}], patchesJson6902: '[{op: replace, path: \"/spec/containers/{{elementIndex}}/image\", value: \"{{im}}\"}]'}]}", images("X:V1", "Y:V1"), policy.Pass, "", "a context for each element"},
		{"mutate: {foreach: [{list: request.object.spec.none, patchesJson6902: '[{op: remove, path: /spec}]'}]}", "", policy.Indeterminate, "foreach[0].list: ", "a list that is not there"},
		{"mutate: {foreach: [{list: \"request.object.spec.none || `[]`\", patchesJson6902: '[{op: remove, path: /spec}]'}]}", "", policy.Skipped, "no patches applied", "an empty list"},
		{"mutate: {foreach: [{" + list + ", patchesJson6902: '[{op: add, path: /metadata/labels/first, value: \"{{request.object.metadata.labels.first || element.name}}\"}]'}]}", labels(", first: b"), policy.Pass, "", "elements see the object as it was"},
		{"mutate: {foreach: [{" + list + ", patchesJson6902: '[{op: add, path: /metadata/labels/first, value: a}]'}, {list: 'keys(request.object.metadata.labels)', patchesJson6902: '[{op: add, path: \"/metadata/labels/seen-{{element}}\", value: x}]'}]}", labels(", first: a, seen-team: x, seen-first: x"), policy.Pass, "", "a second loop reads the result of the first"},
		{"mutate: {foreach: [{list: '[`[\"p\",\"q\"]`]', foreach: [{list: element, patchesJson6902: '[{op: add, path: \"/metadata/labels/{{element1}}\", value: \"i{{elementIndex0}}{{elementIndex1}}\"}]'}]}]}", labels(", p: i00, q: i01"), policy.Pass, "", "a loop in a loop"},
		{"mutate: {foreach: [{list: \"['1', '2']\", patchesJson6902: '[{op: add, path: /spec/containers/0, value: {name: \"n{{element}}\", image: i}}]'}]}", strings.Replace(pod, "containers: [", "containers: [{name: n2, image: i}, {name: n1, image: i}, ", 1), policy.Pass, "", "in the list's order"},
		{"mutate: {foreach: [{list: \"['1', '2']\", order: Descending, patchesJson6902: '[{op: add, path: /spec/containers/0, value: {name: \"n{{element}}\", image: i}}]'}]}", strings.Replace(pod, "containers: [", "containers: [{name: n1, image: i}, {name: n2, image: i}, ", 1), policy.Pass, "", "the other way round"},
		{"mutate: {foreach: [{list: \"['1', '2']\", patchStrategicMerge: {spec: {containers: [{name: 'n{{element}}', image: i}]}}}]}", strings.Replace(pod, "containers: [", "containers: [{name: n1, image: i}, {name: n2, image: i}, ", 1), policy.Pass, "", "merges the other way round, so that the order stays"},

		{"mutate: {foreach: [{" + list + ", patchesJson6902: '[{op: add, path: /metadata/labels/a, value: b}]'}]}", labels(", a: b"), policy.Pass, "", "a loop in which no variable stands"},
		{"mutate: {foreach: [{list: \"[`null`, 'x']\", patchesJson6902: '[{op: add, path: \"/metadata/labels/i{{elementIndex}}\", value: \"{{element}}\"}]'}]}", labels(", i1: x"), policy.Pass, "", "an element that is null"},
		{"mutate: {foreach: [{list: \"['a', 'other']\", patchStrategicMerge: {metadata: {labels: {(team): '{{element}}', a: b}}}}]}", labels(", a: b"), policy.Pass, "", "an anchor that leaves the object alone for one element"},

		{"preconditions: {all: [{key: '{{request.name}}', operator: Equals, value: other}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}", "", policy.Skipped, "preconditions not met", "preconditions that are not met"},
		{"context: [{name: c, configMap: {name: gone}}], mutate: {patchStrategicMerge: {metadata: {labels: {a: '{{c.data.x}}'}}}}", "", policy.Indeterminate, "there is no cluster", "a context that cannot be had"},
		{"context: [{name: c, configMap: {name: gone}}], mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}", labels(", a: b"), policy.Pass, "", "a context that nothing reads"},
		{"exclude: {any: [{resources: {names: [web]}}]}, mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}", "", "", "", "an object that is excluded"},
	} {
		r, err := compile(t, c.body)
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		s := subject(t)
		got := r.Mutate(t.Context(), policy.Case{Subject: s})
		said := ""
		if len(got.Reasons) > 0 {
			said = got.Reasons[0].Message
		}
		if got.Result != c.result || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q %q; want %q %q", c.reason, got.Result, said, c.result, c.says)
		}
		var want map[string]any
		if c.want != "" {
			want = object(t, c.want)
		}
		if !reflect.DeepEqual(got.Object, want) {
			t.Errorf("%s: %v\nwant %v", c.reason, got.Object, want)
		}
		if !reflect.DeepEqual(s.Object.Map(), object(t, pod)) {
			t.Errorf("%s: the object itself is changed", c.reason)
		}
	}
}

func TestMutateErrors(t *testing.T) {
	const path = "spec.rules[0].mutate"
	for _, c := range []struct{ body, want, reason string }{
		{"mutate: {}", path + ": want one of", "nothing"},
		{"mutate: null", path + ": is empty", "null"},
		{"mutate: {patchStrategicMerge: {a: b}, patchesJson6902: '[]'}", path + ": want one of", "two patches"},
		{"mutate: {patchStrategicMerge: {a: '{{ b c }}'}}", path + ".patchStrategicMerge", "no expression"},
		{"mutate: {patchesJson6902: '[{op: put, path: /a}]'}", path + ".patchesJson6902", "no operation"},
		{"mutate: {patchStrategicMerg: {}}", "did you mean patchStrategicMerge?", "a misspelt field"},
		{"mutate: {targets: [{kind: Pod}], patchStrategicMerge: {a: b}}", path + ".targets: ", "other objects"},
		{"mutate: {foreach: []}", path + ".foreach: want 1", "no loop"},
		{"mutate: {foreach: [" + strings.Repeat("{list: request.a, patchStrategicMerge: {a: b}}, ", 51) + "]}", path + ".foreach: want 1 to 50", "too many loops"},
		{"context: [{name: a, variable: {}}], mutate: {patchStrategicMerge: {a: b}}", "spec.rules[0].context[0].variable", "a bad context"},
		{"mutate: {foreach: [{patchesJson6902: '[]'}]}", path + ".foreach[0].list: is empty", "no list"},
		{"mutate: {foreach: [{list: request.a, order: Random, patchesJson6902: '[]'}]}", path + ".foreach[0].order: ", "another order"},
		{"mutate: {foreach: [{list: request.a}]}", path + ".foreach[0]: want one of", "a loop that does nothing"},
		{"mutate: {foreach: [{list: request.a, pattern: {}}]}", path + ".foreach[0].pattern: unknown field", "a field of validation"},
		{"mutate: {foreach: [{list: request.a, foreach: [{list: request.a, foreach: [{list: request.a, foreach: [{list: request.a, foreach: [{list: request.a, foreach: [{list: request.a, patchesJson6902: '[]'}]}]}]}]}]}]}", "exceeds the bound", "loops too deep"},
	} {
		if _, err := compile(t, c.body); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.reason, err, c.want)
		}
	}
	if _, err := compile(t, "mutate: {foreach: ["+strings.Repeat("{list: request.a, patchStrategicMerge: {a: b}}, ", 50)+"]}"); err != nil {
		t.Errorf("as many loops as may be: %v", err)
	}
}

func TestNothingIsChangedAtADeletion(t *testing.T) {
	r, err := compile(t, "mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}}}")
	if err != nil {
		t.Fatal(err)
	}
	s := subject(t)
	s.Operation, s.OldObject, s.Object = "DELETE", s.Object, policy.Content{}
	if got := r.Mutate(t.Context(), policy.Case{Subject: s}); got.Result != "" || got.Object != nil {
		t.Errorf("%+v", got)
	}
}

// TestMutationIsIdempotent applies rules again to their own result.
func TestMutationIsIdempotent(t *testing.T) {
	for _, body := range []string{
		"mutate: {patchStrategicMerge: {metadata: {labels: {a: b}}, spec: {containers: [{(name): '*', imagePullPolicy: Always}]}}}",
		"mutate: {patchStrategicMerge: {spec: {containers: [{name: sidecar, image: s}]}}}",
		"mutate: {foreach: [{list: request.object.spec.containers, patchStrategicMerge: {spec: {containers: [{(name): '{{element.name}}', image: \"{{ replace(element.image, 'v1', 'v2', `1`) }}\"}]}}}]}",
	} {
		r, err := compile(t, body)
		if err != nil {
			t.Fatal(err)
		}
		s := subject(t)
		once := r.Mutate(t.Context(), policy.Case{Subject: s})
		if once.Result != policy.Pass {
			t.Fatalf("%s: %+v", body, once)
		}
		s.Object = policy.ContentOf(once.Object)
		if twice := r.Mutate(t.Context(), policy.Case{Subject: s}); twice.Result != policy.Skipped {
			t.Errorf("%s: %+v", body, twice)
		}
	}
}

func TestChangesOfATarget(t *testing.T) {
	o := options(t)
	changes, err := mutate.CompileChanges(o.Context, json.RawMessage(`{"foreach":[
		{"list":"['a']","patchesJson6902":"[{op: add, path: /data/a, value: x}]"},
		{"list":"keys(target.data)","patchesJson6902":"[{op: add, path: '/data/{{element}}-seen', value: x}]"}]}`), "mutate", []string{"target"})
	if err != nil {
		t.Fatal(err)
	}
	target := object(t, "{data: {b: c}}")
	got, err := changes.Apply(t.Context(), variable.Context{"target": target}, target)
	if want := object(t, "{data: {b: c, a: x, a-seen: x, b-seen: x}}"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := mutate.CompileChanges(o.Context, json.RawMessage(`{"patchStrategicMerge":{"a":"b"},"fareach":[]}`), "mutate", nil); err == nil {
		t.Error("a misspelt field")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := changes.Apply(ctx, variable.Context{"target": target}, target); got != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("the time ends: %v, %v", got, err)
	}
}

// TestElementsShareTheirRoom: the output of a foreach is bounded for all elements together,
// since the object controls the number of elements and the size of variables.
func TestElementsShareTheirRoom(t *testing.T) {
	element := func(i int) map[string]any { return map[string]any{"name": strconv.Itoa(i), "image": "a:b"} }
	for name, body := range map[string]string{
		"operations": `"patchesJson6902":"[{op: add, path: '/spec/containers/{{elementIndex}}/note', value: 'x{{request.object.metadata.annotations.a}}'}]"`,
		"a merge":    `"patchStrategicMerge":{"spec":{"containers":[{"(name)":"{{element.name}}","note":"x{{request.object.metadata.annotations.a}}"}]}}`,
		"in another": `"foreach":[{"list":"['a','b']","patchesJson6902":"[{op: add, path: '/spec/containers/{{elementIndex0}}/{{element}}', value: 'x{{request.object.metadata.annotations.a}}'}]"}]`,
	} {
		changes, err := mutate.CompileChanges(options(t).Context, json.RawMessage(`{"foreach":[{"list":"request.object.spec.containers",`+body+`}]}`), "mutate", nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			reason       string
			count, bytes int
			fits         bool
		}{
			{"one long text", 1, 1 << 20, true},
			{"some", 2, 1 << 19, true},
			{"many", 8, 1 << 19, false},
			{"many short ones", 500, 100, true},
		} {
			var containers []any
			for i := range c.count {
				containers = append(containers, element(i))
			}
			object := map[string]any{
				"metadata": map[string]any{"annotations": map[string]any{"a": strings.Repeat("x", c.bytes)}}, "spec": map[string]any{"containers": containers},
			}
			got, err := changes.Apply(t.Context(), variable.Context{"request": map[string]any{"object": object}}, object)
			if (err == nil) != c.fits || (got != nil) != c.fits || err != nil && !errors.Is(err, jmespath.ErrTooLarge) {
				t.Errorf("%s, %s: %v", name, c.reason, err)
			}
		}
	}
}

// TestRequestOfLoops: a second loop reads the result of the first, and fails where the
// request that it reads cannot be read.
func TestRequestOfLoops(t *testing.T) {
	changes, err := mutate.CompileChanges(options(t).Context, json.RawMessage(`{"foreach":[
		{"list":"['a']","patchesJson6902":"[{op: add, path: /data/a, value: x}]"},
		{"list":"['b']","patchesJson6902":"[{op: add, path: /data/b, value: '{{request.object.data.a}}'}]"}]}`), "mutate", nil)
	if err != nil {
		t.Fatal(err)
	}
	unread := &policy.Subject{Request: policy.RequestFrom([]byte("[]"))}
	for _, c := range []struct {
		reason, want string
		request      any
	}{
		{"a request without an object", "{data: {a: x, b: x}}", map[string]any{}},
		{"one of which the members are read one by one", "{data: {a: x, b: x}}", rulecontext.Request(&policy.Subject{}, nil)},
		{"one that cannot be read", "null", rulecontext.Request(unread, nil)},
	} {
		got, err := changes.Apply(t.Context(), variable.Context{"request": c.request}, object(t, "{data: {}}"))
		if !reflect.DeepEqual(got, object(t, c.want)) || (err != nil) != (got == nil) {
			t.Errorf("%s: %v, %v", c.reason, got, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	f.Add(`{"name":"r","match":{"any":[{"resources":{"kinds":["Pod"]}}]},"mutate":{"patchStrategicMerge":{"metadata":{"labels":{"+(a)":"{{request.name}}"}}}}}`)
	f.Add(`{"name":"r","match":{"any":[{"resources":{"kinds":["Pod"]}}]},"mutate":{"foreach":[{"list":"request.object.spec.containers","patchesJson6902":"[{op: add, path: /a, value: {{element.name}}}]"}]}}`)
	o, s := options(f), subject(f)
	before := object(f, pod)
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := mutate.Compile(o, json.RawMessage(raw), "rule")
		if err != nil {
			return
		}
		if got := r.Mutate(t.Context(), policy.Case{Subject: s}); got.Result != policy.Pass && got.Object != nil {
			t.Error("an object for a result other than pass")
		}
		if !reflect.DeepEqual(s.Object.Map(), before) {
			t.Error("the object itself is changed")
		}
	})
}

func Example() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: rand.Reader})
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := mutate.Compile(rule.Options{Context: rulecontext.Options{Engine: engine}},
		json.RawMessage(`{"name": "owned", "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
			"mutate": {"patchStrategicMerge": {"metadata": {"labels": {"+(owner)": "{{ request.userInfo.username }}"}}}}}`), "spec.rules[0]")
	if err != nil {
		fmt.Println(err)
		return
	}
	made := r.Mutate(context.Background(), policy.Case{Subject: &policy.Subject{
		Kind: "Pod", Version: "v1", Operation: "CREATE", User: policy.User{Name: "ann"},
		Object: policy.ContentOf(map[string]any{"kind": "Pod", "metadata": map[string]any{"name": "web"}}),
	}})
	fmt.Println(made.Result, made.Object["metadata"])
	// Output: pass map[labels:map[owner:ann] name:web]
}
