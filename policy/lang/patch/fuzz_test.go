package patch_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func FuzzCompileJSON(f *testing.F) {
	for _, seed := range []string{
		"- op: add\n  path: /a/{{i}}\n  value: {{s}}", `[{"op":"test","path":"/a~1b","value":{"c":[1,"{{s}}"]}}]`,
		"- {op: move, from: /a, path: /b/-}", "- op: replace\n  path: /a\n  value: |\n    x {{ s || '' }}\n    \\{{y}}", "{{", "variable_0_", "- {op: remove, path: /l/0}",
	} {
		f.Add(seed)
	}
	engine := newEngine(f)
	data := variable.Context{"i": 1.0, "s": "text"}
	f.Fuzz(func(t *testing.T, s string) {
		j, err := patch.CompileJSON(engine, s)
		if err != nil {
			return
		}
		object := object(t, `{a: {b: c}, l: [1, {d: e}], b: []}`)
		got, err := apply(t, j, data, object)
		if err == nil {
			compareAll(t, object, got)
		}
	})
}

func FuzzMerge(f *testing.F) {
	for _, seed := range []string{
		`{"metadata":{"labels":{"+(a)":"{{s}}","(app)":"*"}}}`, `{"spec":{"containers":[{"(name)":"*","image":"x","<(tty)":true}]}}`,
		`{"spec":{"volumes":[{"$patch":"replace"},{"name":"x","emptyDir":{}}],"tolerations":null}}`, `{"spec":"{{o}}"}`, `{"spec":{"containers":[{"name":"one","$patch":"delete"}]}}`,
	} {
		f.Add(seed)
	}
	engine := newEngine(f)
	data := variable.Context{"s": "text", "o": map[string]any{"containers": []any{map[string]any{"name": "one", "tty": true}}}}
	f.Fuzz(func(t *testing.T, s string) {
		var value any
		if json.Unmarshal([]byte(s), &value) != nil {
			return
		}
		merge, err := patch.CompileMerge(engine, value)
		if err != nil {
			return
		}
		object := object(t, pod)
		got, err := apply(t, merge, data, object)
		if err == nil {
			compareAll(t, object, got)
		}
	})
}

func FuzzDiff(f *testing.F) {
	f.Add(`{"a":[1,{"name":"x"}]}`, `{"a":[{"name":"x","v":1}]}`)
	f.Add(`{"~":{"/":null}}`, `{"~":{}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		var before, after map[string]any
		if json.Unmarshal([]byte(a), &before) != nil || json.Unmarshal([]byte(b), &after) != nil || before == nil || after == nil {
			return
		}
		compareAll(t, before, after)
	})
}

// compareAll applies the operations of Diff with this package alone: a name may look like a
// variable, and numbers may be written in many ways.
func compareAll(t *testing.T, before, after map[string]any) {
	t.Helper()
	var list []any
	for _, o := range patch.Diff(before, after) {
		list = append(list, map[string]any{"op": o.Op, "path": "{{path" + fmt.Sprint(len(list)) + "}}", "value": "{{value" + fmt.Sprint(len(list)) + "}}"})
	}
	data := variable.Context{}
	for i, o := range patch.Diff(before, after) {
		data["path"+fmt.Sprint(i)], data["value"+fmt.Sprint(i)] = o.Path, o.Value
		if o.Op == "remove" {
			delete(list[i].(map[string]any), "value")
		}
	}
	got := before
	if list != nil {
		var err error
		got, err = mustJSON(t, list).Apply(data, before)
		if err != nil {
			t.Fatal(err)
		}
	}
	if was, want := text(t, got), text(t, after); was != want {
		t.Fatalf("%s became %s, want %s", text(t, before), was, want)
	}
}
