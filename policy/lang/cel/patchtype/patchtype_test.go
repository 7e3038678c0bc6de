package patchtype_test

import (
	"encoding/json"
	"strings"
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
	"github.com/quaymaster/quaymaster/policy/lang/cel/library"
	"github.com/quaymaster/quaymaster/policy/lang/cel/patchtype"
)

func patches(t testing.TB) *cel.Scope {
	t.Helper()
	env, err := cel.NewEnv(cel.Options{Patches: true, Variables: []cel.Variable{{Name: "object", Type: celgo.DynType}, {Name: "exceptions", Type: library.ExceptionsType()}}})
	if err != nil {
		t.Fatal(err)
	}
	scope, err := env.NewScope()
	if err != nil {
		t.Fatal(err)
	}
	return scope
}

func sized() cel.Inputs {
	deep := []any{}
	for range 99 {
		deep = []any{deep}
	}
	return cel.Inputs{Variables: map[string]any{"object": map[string]any{"spec": map[string]any{"size": float64(1)}, "deep": deep}}}
}

// TestObject reads what expressions make with Object{...}.
func TestObject(t *testing.T) {
	for _, c := range []struct{ reason, expression, want string }{
		{"nothing", "Object{}", `{}`},
		{"parts", "Object{spec: Object.spec{a: 1, b: 'c', d: [true], e: {'f': 1.5}, g: null}}", `{"spec":{"a":1,"b":"c","d":[true],"e":{"f":1.5},"g":null}}`},
		{"parts in lists and maps", "Object{a: [Object.a{b: 1}], c: {'d': Object.c{e: 2}}}", `{"a":[{"b":1}],"c":{"d":{"e":2}}}`},
		{"of the object", "Object{spec: Object.spec{size: object.spec.size}}", `{"spec":{"size":1}}`},
		{"read again", "Object{spec: Object.spec{a: Object{b: 3}.b + 1, c: has(Object{b: 3}.d)}}", `{"spec":{"a":4,"c":false}}`},
		{"compared", "Object{a: Object{b: 1} == Object{b: 1}, c: Object{b: 1} == Object{b: 2}, d: type(Object{}) == type(Object.e{})}", `{"a":true,"c":false,"d":false}`},
		{"compared with other values", "Object{a: dyn(Object{b: 1}) == dyn(1), c: dyn(Object{b: 1}) == dyn({'b': 1}), d: dyn(Object{b: 1}) == dyn(Object.e{b: 1}), f: dyn(Object.e{b: 1}) == dyn(Object.e{b: 1})}", `{"a":false,"c":false,"d":false,"f":true}`},
		{"beside a message of the language", "Object{a: google.protobuf.Int32Value{value: 1} == 1}", `{"a":true}`},
		{"as deep as may be", "Object{a: object.deep}", `{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`},
		{"optional", "Object{?a: optional.none(), ?b: optional.of(1)}", `{"b":1}`},
		{"chosen", "object.spec.size > 0.0 ? Object{a: 1} : Object{}", `{"a":1}`},
	} {
		scope := patches(t)
		p, err := scope.Compile("e", c.expression, patchtype.ObjectType())
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		value, err := p.Eval(t.Context(), scope.NewActivation(sized()))
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		object, err := patchtype.Object(value)
		if text, _ := json.Marshal(object); err != nil || string(text) != c.want {
			t.Errorf("%s: %s %v", c.reason, text, err)
		}
	}
	for _, c := range []struct{ reason, expression, want string }{
		{"a part at another place", "Object{spec: Object.status{}}", "Object.status{...} is used for a field of type Object.spec{...}"},
		{"below", "Object{spec: Object.spec{a: [{'b': Object.spec.c{}}]}}", "Object.spec.c{...} is used for a field of type Object.spec.a{...}"},
		{"the object in itself", "Object{spec: Object{}}", "Object{...} is used for a field of type Object.spec{...}"},
		{"an operation", "Object{spec: JSONPatch{op: 'add'}}", "JSONPatch{...} is used for a field of type Object.spec{...}"},
		{"no word", "Object{spec: type(1)}", "JSON has no word"},
		{"one deeper", "Object{a: [object.deep]}", "nested deeper than 100"},
	} {
		scope := patches(t)
		p, err := scope.Compile("e", c.expression, patchtype.ObjectType())
		if err != nil {
			t.Fatal(err)
		}
		value, err := p.Eval(t.Context(), scope.NewActivation(sized()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := patchtype.Object(value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestNoObject: a value that is no object is refused, whatever its declared type.
func TestNoObject(t *testing.T) {
	for expression, want := range map[string]bool{"Object{}": true, "{'a': 1}": true, "'a'": false, "[Object{}]": false, "null": false} {
		scope := patches(t)
		p, err := scope.Compile("e", expression)
		if err != nil {
			t.Fatal(err)
		}
		value, err := p.Eval(t.Context(), scope.NewActivation(sized()))
		if err != nil {
			t.Fatal(err)
		}
		if object, err := patchtype.Object(value); (err == nil) != want || (object != nil) != want {
			t.Errorf("%s: %v %v", expression, object, err)
		}
	}
}

// TestOperations reads what expressions make with JSONPatch{...}.
func TestOperations(t *testing.T) {
	scope := patches(t)
	read := func(expression string, most int) ([]patchtype.Operation, error) {
		p, err := scope.Compile("e", expression)
		if err != nil {
			t.Fatal(err)
		}
		value, err := p.Eval(t.Context(), scope.NewActivation(sized()))
		if err != nil {
			t.Fatal(err)
		}
		return patchtype.Operations(value, most)
	}
	got, err := read("[JSONPatch{op: 'add', path: '/a', value: Object.a{b: 1}}, JSONPatch{op: 'move', from: '/a', path: '/b'}, JSONPatch{op: 'test', path: '/c', value: null}]", 3)
	text, _ := json.Marshal(got)
	const want = `[{"Op":"add","Path":"/a","From":"","Value":{"b":1},"HasValue":true},{"Op":"move","Path":"/b","From":"/a","Value":null,"HasValue":false},{"Op":"test","Path":"/c","From":"","Value":null,"HasValue":true}]`
	if err != nil || string(text) != want {
		t.Errorf("%s %v", text, err)
	}
	for _, c := range []struct {
		reason, expression, want string
		most                     int
	}{
		{"too many", "[JSONPatch{op: 'add'}, JSONPatch{op: 'add'}]", "more than 1 operations", 1},
		{"no list", "JSONPatch{op: 'add'}", "is no list of JSONPatch", 1},
		{"something else", "[Object{}]", "holds more than JSONPatch", 1},
		{"a text", "['add']", "holds more than JSONPatch", 1},
		{"a text behind one", "[dyn(JSONPatch{op: 'add'}), dyn('add')]", "holds more than JSONPatch", 2},
		{"a value at another place", "[JSONPatch{op: 'add', value: Object.a{b: Object.c{}}}]", "Object.c{...} is used for a field of type Object.a.b{...}", 1},
		{"no word", "[JSONPatch{op: 'add', path: '/a', value: type(1)}]", "the value of add /a: JSON has no word", 1},
	} {
		if _, err := read(c.expression, c.most); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestPatchTypes are there where they are asked for, and have the fields that they have.
func TestPatchTypes(t *testing.T) {
	env, err := cel.NewEnv(cel.Options{})
	if err != nil {
		t.Fatal(err)
	}
	without, err := env.NewScope()
	if err != nil {
		t.Fatal(err)
	}
	for expression, want := range map[string]string{
		"Object{}": "undeclared reference", "JSONPatch{op: 'add'}": "undeclared reference", "Object.spec{}": "undeclared reference",
	} {
		if _, err := without.Compile("e", expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", expression, err)
		}
	}
	for expression, want := range map[string]string{
		"exceptions.nosuch": "undefined field 'nosuch'", "google.protobuf.Int32Value{nosuch: 1}": "undefined field 'nosuch'",
		"JSONPatch{nosuch: 1}": "undefined field 'nosuch'", "JSONPatch{path: 1}": "expected type of field 'path' is 'string'", "Other{}": "undeclared reference to 'Other'",
	} {
		if _, err := patches(t).Compile("e", expression); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", expression, err)
		}
	}
	for expression, want := range map[string]bool{"JSONPatch{op: 'add'}": true, "Object{}": false, "{'op': 'add'}": false} {
		if _, err := patches(t).Compile("e", expression, patchtype.PatchType()); (err == nil) != want {
			t.Errorf("%s as an operation: %v", expression, err)
		}
	}
}

func TestExceptionsType(t *testing.T) {
	env, err := cel.NewEnv(cel.Options{Variables: []cel.Variable{{Name: "exceptions", Type: library.ExceptionsType()}}})
	if err != nil {
		t.Fatal(err)
	}
	scope, err := env.NewScope()
	if err != nil {
		t.Fatal(err)
	}
	p, err := scope.Compile("e", "'a' in exceptions.allowedImages && exceptions.allowedValues.size() == 0", celgo.BoolType)
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range []string{"a", "b"} {
		value := map[string]any{"allowedImages": []any{image}, "allowedValues": []any{}}
		held, err := p.Bool(t.Context(), scope.NewActivation(cel.Inputs{Variables: map[string]any{"exceptions": value}}))
		if err != nil || held != (image == "a") {
			t.Errorf("%s: %v %v", image, held, err)
		}
	}
	if _, err := scope.Compile("e", "exceptions.allowedUsers"); err == nil {
		t.Error("another field")
	}
}
