package mutation_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/mutation"
)

func made(expression string) (ref.Val, error) {
	env, err := cel.NewEnv(cel.Options{Kubernetes: true, Patches: true, Variables: []cel.Variable{{Name: "object", Type: celgo.DynType}}})
	if err != nil {
		return nil, err
	}
	scope, err := env.NewScope()
	if err != nil {
		return nil, err
	}
	p, err := scope.Compile("e", expression)
	if err != nil {
		return nil, err
	}
	return p.Eval(context.Background(), scope.NewActivation(cel.Inputs{}))
}

func target() mutation.Target {
	return mutation.Target{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"n": "1"},
	}}
}

// TestPatchAsServer: the results and messages are those of the API server's library.
func TestPatchAsServer(t *testing.T) {
	for _, c := range []struct{ reason, expression, want, err string }{
		{"it is removed", "[JSONPatch{op: 'remove', path: '/data/n'}]", "map[]", ""},
		{"a test does not hold", "[JSONPatch{op: 'test', path: '/data/n', value: '2'}, JSONPatch{op: 'remove', path: '/data'}]", "map[n:1]", ""},
		{"a test does not hold after a replacement of nothing", "[JSONPatch{op: 'replace', path: '/data/gone', value: 'a'}, JSONPatch{op: 'test', path: '/data/n', value: '2'}]", "map[n:1]", ""},
		{"nothing to replace", "[JSONPatch{op: 'replace', path: '/data/gone', value: 'a'}]", "map[gone:a n:1]", ""},
		{"nothing to copy", "[JSONPatch{op: 'copy', from: '/data/gone', path: '/data/a'}]", "map[a:<nil> n:1]", ""},
		{"nothing to remove", "[JSONPatch{op: 'remove', path: '/data/gone'}]", "", "JSON Patch: error in remove for path: '/data/gone'"},
		{"nothing to add to", "[JSONPatch{op: 'add', path: '/gone/a', value: 'a'}]", "", "JSON Patch: add operation does not apply"},
		{"more steps than are applied one by one", "[1,2,3,4,5,6,7,8,9,10].map(a, [1,2,3,4,5,6,7,8,9,10].map(b, [1,2,3,4,5,6,7,8,9,10,11].map(c, JSONPatch{op: 'replace', path: '/data/gone', value: 'a'}))).flatten(2)", "", "more than 1000 operations"},
	} {
		value, err := made(c.expression)
		if err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}
		after, err := mutation.PatchAsServer(value, target())
		if c.err == "" && (err != nil || fmt.Sprint(after["data"]) != c.want) || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v %v", c.reason, after["data"], err)
		}
	}
}

// TestPatchInPlace: a copy of a part that the patch made does not change with it, and the object of the request never changes.
func TestPatchInPlace(t *testing.T) {
	for _, c := range []struct{ reason, expression, want string }{
		{"several changes of a map", "[JSONPatch{op: 'add', path: '/data/a', value: '1'}, JSONPatch{op: 'add', path: '/data/b', value: '2'}, JSONPatch{op: 'remove', path: '/data/n'}]", "map[a:1 b:2]"},
		{"a change after a copy", "[JSONPatch{op: 'add', path: '/data/a', value: {'x': '1'}}, JSONPatch{op: 'add', path: '/data/a/y', value: '2'}, " +
			"JSONPatch{op: 'copy', from: '/data/a', path: '/data/b'}, JSONPatch{op: 'add', path: '/data/a/z', value: '3'}, JSONPatch{op: 'remove', path: '/data/b/x'}]", "map[a:map[x:1 y:2 z:3] b:map[y:2] n:1]"},
		{"a change after a move", "[JSONPatch{op: 'add', path: '/data/a', value: {'x': '1'}}, JSONPatch{op: 'add', path: '/data/a/y', value: '2'}, " +
			"JSONPatch{op: 'move', from: '/data/a', path: '/data/b'}, JSONPatch{op: 'add', path: '/data/b/z', value: '3'}]", "map[b:map[x:1 y:2 z:3] n:1]"},
	} {
		value, err := made(c.expression)
		if err != nil {
			t.Fatalf("%s: %v", c.reason, err)
		}
		about := target()
		after, err := mutation.Patch(value, about)
		if err != nil || fmt.Sprint(after["data"]) != c.want || !reflect.DeepEqual(about, target()) {
			t.Errorf("%s: %v %v, want %s; the object is %v", c.reason, after["data"], err, c.want, about.Object)
		}
	}
}

func TestCheckIdentity(t *testing.T) {
	before := target().Object
	for _, c := range []struct {
		reason string
		after  map[string]any
		ok     bool
	}{
		{"the same", before, true},
		{"other data", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}, true},
		{"another name", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "b"}}, false},
		{"another kind", map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "a"}}, false},
		{"a namespace", map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "namespace": "b"}}, false},
	} {
		if err := mutation.CheckIdentity(before, c.after); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

func Example() {
	value, err := made("[JSONPatch{op: 'add', path: '/data/more', value: 'b'}]")
	if err != nil {
		fmt.Println(err)
		return
	}
	object, err := mutation.Patch(value, target())
	fmt.Println(object["data"], err)
	// Output: map[more:b n:1] <nil>
}

// TestSame: values are the same as reflect.DeepEqual has it.
func TestSame(t *testing.T) {
	shared, list := map[string]any{"a": "b"}, []any{"a"}
	values := []any{
		nil, "a", "b", "", 1.0, 2.0, int64(1), true, false, map[string]any(nil), map[string]any{}, []any(nil), []any{}, shared, map[string]any{"a": "b"}, map[string]any{"a": nil},
		map[string]any{"b": nil}, map[string]any{"a": "b", "c": shared}, map[string]any{"a": "b", "c": map[string]any{"a": "c"}}, list, []any{"a"}, []any{"b"}, []any{"a", list}, []any{"a", []any{"a", nil}},
	}
	for _, a := range values {
		for _, b := range values {
			if got, want := mutation.Same(a, b), reflect.DeepEqual(a, b); got != want {
				t.Errorf("%#v and %#v: %v, want %v", a, b, got, want)
			}
		}
	}
}
