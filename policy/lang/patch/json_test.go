package patch_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/patch"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func mustJSON(tb testing.TB, value any) *patch.JSON {
	tb.Helper()
	j, err := patch.CompileJSON(newEngine(tb), value)
	if err != nil {
		tb.Fatalf("%v: %v", value, err)
	}
	return j
}

func TestJSON(t *testing.T) {
	for _, c := range []struct{ patch, want, reason string }{
		{`[{"op":"add","path":"/a","value":1}]`, `{"a":1,"l":[1,2],"m":{"x":"y"}}`, "add"},
		{`[{op: add, path: /m/x, value: z}]`, `{"l":[1,2],"m":{"x":"z"}}`, "add replaces a member"},
		{`[{op: add, path: /m/x, value: "y"}]`, `{"l":[1,2],"m":{"x":"y"}}`, "by itself"},
		{`[{op: add, path: /l/0, value: 0}]`, `{"l":[0,1,2],"m":{"x":"y"}}`, "add inserts an element"},
		{`[{op: add, path: /l/2, value: 3}]`, `{"l":[1,2,3],"m":{"x":"y"}}`, "after the last"},
		{`[{op: add, path: /l/-, value: 3}]`, `{"l":[1,2,3],"m":{"x":"y"}}`, "at the end"},
		{`[{op: add, path: /l/3, value: 3}]`, `add: there is nothing here: the list has 2 elements`, "beyond the end"},
		{`[{op: add, path: /l/x, value: 3}]`, `"x" is no index`, "no index"},
		{`[{op: add, path: /l/01, value: 3}]`, `"01" is no index`, "an index with zeros"},
		{`[{op: add, path: /l/+1, value: 3}]`, `"+1" is no index`, "an index with a sign"},
		{`[{op: add, path: /l/-1, value: 3}]`, `{"l":[1,2,3],"m":{"x":"y"}}`, "a negative index, as in Kyverno: after the last"},
		{`[{op: add, path: /l/-3, value: 3}]`, `{"l":[3,1,2],"m":{"x":"y"}}`, "before the first"},
		{`[{op: add, path: /l/-4, value: 3}]`, `there is nothing here: the list has 2 elements`, "before the list"},
		{`[{op: add, path: /l/-0, value: 3}]`, `"-0" is no index`, "no negative index"},
		{`[{op: replace, path: /l/-1, value: 3}]`, `{"l":[1,3],"m":{"x":"y"}}`, "a negative index to replace: the last"},
		{`[{op: replace, path: /l/-3, value: 3}]`, `there is nothing here: the list has 2 elements`, "before the first to replace"},
		{`[{op: remove, path: /l/-1}]`, `{"l":[1],"m":{"x":"y"}}`, "a negative index to remove"},
		{`[{op: remove, path: /l/-3}]`, `{"l":[1,2],"m":{"x":"y"}}`, "before the first to remove"},
		{`[{op: add, path: /m/-1, value: 3}]`, `{"l":[1,2],"m":{"-1":3,"x":"y"}}`, "which is a name in an object"},
		{`[{op: add, path: /a/b/c, value: 1}]`, `{"a":{"b":{"c":1}},"l":[1,2],"m":{"x":"y"}}`, "parents are made"},
		{`[{op: add, path: /a/0/c, value: 1}]`, `{"a":[{"c":1}],"l":[1,2],"m":{"x":"y"}}`, "lists, too"},
		{`[{op: add, path: /a/-, value: 1}]`, `{"a":[1],"l":[1,2],"m":{"x":"y"}}`, "by -"},
		{`[{op: add, path: /a/1, value: 1}]`, `the list has 0 elements`, "lists are not padded"},
		{`[{op: add, path: /l/-/a, value: 1}]`, `{"l":[1,2,{"a":1}],"m":{"x":"y"}}`, "a parent at the end"},
		{`[{op: add, path: /m/x/z, value: 1}]`, `a string has no member "z"`, "below a string"},
		{`[{op: add, path: /m/a~1b~0c, value: 1}]`, `{"l":[1,2],"m":{"a/b~c":1,"x":"y"}}`, "escapes"},
		{`[{op: add, path: /a, value: null}]`, `{"a":null,"l":[1,2],"m":{"x":"y"}}`, "null is a value"},
		{`[{op: remove, path: /m/x}]`, `{"l":[1,2],"m":{}}`, "remove"},
		{`[{op: remove, path: /l/0}]`, `{"l":[2],"m":{"x":"y"}}`, "remove an element"},
		{`[{op: remove, path: /nope}]`, `{"l":[1,2],"m":{"x":"y"}}`, "remove a missing member"},
		{`[{op: remove, path: /nope/a/b}]`, `{"l":[1,2],"m":{"x":"y"}}`, "or its parents"},
		{`[{op: remove, path: /l/7}]`, `{"l":[1,2],"m":{"x":"y"}}`, "or the element"},
		{`[{op: remove, path: /l/-}]`, `patch at /l/-: remove: "-" is no index of a list`, "- is after the last, and names no element"},
		{`[{op: test, path: /l/-, value: null}]`, `patch at /l/-: test: "-" is no index of a list`, "nor one that is null"},
		{`[{op: replace, path: /m/x, value: 1}]`, `{"l":[1,2],"m":{"x":1}}`, "replace"},
		{`[{op: replace, path: /l/1, value: 1}]`, `{"l":[1,1],"m":{"x":"y"}}`, "replace an element"},
		{`[{op: replace, path: /m/z, value: 1}]`, `patch at /m/z: replace: there is nothing here`, "replace a missing member"},
		{`[{op: replace, path: /l/2, value: 1}]`, `patch at /l/2: replace: there is nothing here`, "replace no element"},
		{`[{op: replace, path: /z/z, value: 1}]`, `patch at /z/z: replace: there is nothing here`, "replace where nothing is"},
		{`[{op: move, from: /m/x, path: /a}]`, `{"a":"y","l":[1,2],"m":{}}`, "move"},
		{`[{op: move, from: /l/0, path: /l/1}]`, `{"l":[2,1],"m":{"x":"y"}}`, "move in a list"},
		{`[{op: move, from: /z, path: /a}]`, `move: from /z: there is nothing here`, "move nothing"},
		{`[{op: move, from: /m, path: /m/a}]`, `cannot be moved into itself`, "move into itself"},
		{`[{op: move, from: /m, path: /n/a}]`, `{"l":[1,2],"n":{"a":{"x":"y"}}}`, "move further in, elsewhere"},
		{`[{op: move, from: /m, path: /m}]`, `{"l":[1,2],"m":{"x":"y"}}`, "move onto itself"},
		{`[{op: copy, from: /m, path: /l/-}]`, `{"l":[1,2,{"x":"y"}],"m":{"x":"y"}}`, "copy"},
		{`[{op: copy, from: /l/x, path: /a}]`, `copy: from /l/x: "x" is no index`, "copy from no index"},
		{`[{op: replace, path: /l/x/y, value: 1}]`, `"x" is no index`, "below no index"},
		{`[{op: replace, path: /l/0/y, value: 1}]`, `a number has no member "y"`, "below a number in a list"},
		{`[{op: add, path: /n, value: null}, {op: remove, path: /n/-1}]`, `{"l":[1,2],"m":{"x":"y"},"n":null}`, "there is nothing in null to remove"},
		{`[{op: copy, from: /z, path: /a}]`, `copy: from /z: there is nothing here`, "copy nothing"},
		{`[{op: test, path: /m/x, value: "y"}, {op: remove, path: /m}]`, `{"l":[1,2]}`, "test"},
		{`[{op: remove, path: /m}, {op: test, path: /l/0, value: 2}]`, `patch at /l/0: test: the test failed: want 2, found 1`, "a test that fails"},
		{`[{op: test, path: /l, value: [1, 2]}]`, `{"l":[1,2],"m":{"x":"y"}}`, "test a list"},
		{`[{op: test, path: /nope, value: null}]`, `{"l":[1,2],"m":{"x":"y"}}`, "a missing member is null"},
		{`[{op: test, path: /m/x/z, value: null}]`, `a string has no member "z"`, "which a string's member is not"},
		{`[{op: test, path: /l/-1, value: 2}]`, `{"l":[1,2],"m":{"x":"y"}}`, "test by a negative index"},
		{`[{op: test, path: /l/-1, value: null}]`, `the test failed: want null, found 2`, "another value by a negative index"},
		{`[{op: test, path: /nope, value: 1}]`, `the test failed: want 1, found null`, "and nothing else"},
		{`[{op: add, path: /a, value: {b: [1]}}, {op: add, path: /a/b/-, value: 2}, {op: copy, from: /a/b/0, path: /a/c}]`, `{"a":{"b":[1,2],"c":1},"l":[1,2],"m":{"x":"y"}}`, "one after the other"},
	} {
		for form, value := range map[string]any{"text": c.patch, "list": read(t, c.patch)} {
			got, err := apply(t, mustJSON(t, value), nil, object(t, `{"l":[1,2],"m":{"x":"y"}}`))
			was := text(t, got)
			if err != nil {
				was = err.Error()
			}
			if failed := (*patch.Error)(nil); was != c.want && (err == nil || !errors.As(err, &failed) || !strings.Contains(was, c.want)) {
				t.Errorf("%s (%s)\n%s\n got %s\nwant %s", c.reason, form, c.patch, was, c.want)
			}
			if errors.Is(err, patch.ErrTestFailed) != strings.Contains(c.want, "the test failed") {
				t.Errorf("%s: %v is no ErrTestFailed", c.reason, err)
			}
		}
	}
}

// TestNegativeIndices: a negative index counts from the last element, in the middle of a path as at
// its end; only the last index of add, copy and move counts from the position after it.
func TestNegativeIndices(t *testing.T) {
	for _, c := range []struct{ patch, want, reason string }{
		{`[{op: add, path: /l/-1/x, value: 3}]`, `{"l":[{"a":1},{"a":2,"x":3}],"v":7}`, "add to the last element"},
		{`[{op: add, path: /l/-2/x, value: 3}]`, `{"l":[{"a":1,"x":3},{"a":2}],"v":7}`, "add to the first element"},
		{`[{op: add, path: /l/-3/x, value: 3}]`, `there is nothing here: the list has 2 elements`, "add before the list"},
		{`[{op: add, path: /l/-1, value: 3}]`, `{"l":[{"a":1},{"a":2},3],"v":7}`, "add an element"},
		{`[{op: add, path: /l/-/x, value: 3}]`, `{"l":[{"a":1},{"a":2},{"x":3}],"v":7}`, "add to a new element"},
		{`[{op: add, path: /l/2/x, value: 3}]`, `{"l":[{"a":1},{"a":2},{"x":3}],"v":7}`, "add to a new element by its index"},
		{`[{op: add, path: /l/-1/n/-1, value: 3}]`, `{"l":[{"a":1},{"a":2,"n":[3]}],"v":7}`, "add to a new list of the last element"},
		{`[{op: add, path: /n/-1/x, value: 3}]`, `{"l":[{"a":1},{"a":2}],"n":[{"x":3}],"v":7}`, "add to the first element of a new list"},
		{`[{op: add, path: /n, value: []}, {op: add, path: /n/-1/x, value: 3}]`, `there is nothing here: the list has 0 elements`, "add to the last element of none"},
		{`[{op: replace, path: /l/-1/a, value: 3}]`, `{"l":[{"a":1},{"a":3}],"v":7}`, "replace in the last element"},
		{`[{op: replace, path: /l/-3/a, value: 3}]`, `there is nothing here: the list has 2 elements`, "replace before the list"},
		{`[{op: replace, path: /l/-1, value: 3}]`, `{"l":[{"a":1},3],"v":7}`, "replace the last element"},
		{`[{op: remove, path: /l/-1/a}]`, `{"l":[{"a":1},{}],"v":7}`, "remove from the last element"},
		{`[{op: remove, path: /l/-1}]`, `{"l":[{"a":1}],"v":7}`, "remove the last element"},
		{`[{op: copy, from: /l/-2/a, path: /l/-1/x}]`, `{"l":[{"a":1},{"a":2,"x":1}],"v":7}`, "copy into the last element"},
		{`[{op: copy, from: /l/-2, path: /l/-1}]`, `{"l":[{"a":1},{"a":2},{"a":1}],"v":7}`, "copy after the last element"},
		{`[{op: copy, from: /l/-3, path: /l/-1}]`, `from /l/-3: there is nothing here`, "copy from before the list"},
		{`[{op: move, from: /v, path: /l/-1/x}]`, `{"l":[{"a":1},{"a":2,"x":7}]}`, "move into the last element"},
		{`[{op: move, from: /l/-2, path: /l/-1}]`, `{"l":[{"a":2},{"a":1}],"v":7}`, "move after the last element"},
		{`[{op: move, from: /l/-1/a, path: /l/0/x}]`, `{"l":[{"a":1,"x":2},{}],"v":7}`, "move from the last element"},
		{`[{op: test, path: /l/-1/a, value: 2}]`, `{"l":[{"a":1},{"a":2}],"v":7}`, "test in the last element"},
		{`[{op: test, path: /l/-1/a, value: 1}]`, `the test failed: want 1, found 2`, "test another value in the last element"},
		{`[{op: test, path: /l/-1, value: {a: 2}}]`, `{"l":[{"a":1},{"a":2}],"v":7}`, "test the last element"},
	} {
		got, err := apply(t, mustJSON(t, read(t, c.patch)), nil, object(t, `{"l":[{"a":1},{"a":2}],"v":7}`))
		was := text(t, got)
		if err != nil {
			was = err.Error()
		}
		if was != c.want && (err == nil || !strings.Contains(was, c.want)) {
			t.Errorf("%s\n%s\n got %s\nwant %s", c.reason, c.patch, was, c.want)
		}
	}
}

func TestJSONText(t *testing.T) {
	data := variable.Context{
		"i": 1.0, "s": "text", "three": "3", "yes": "yes", "empty": "", "null": nil, "flag": true,
		"hostile": "a\n- op: remove\n  path: /m", "flow": "{a: b}", "quote": `"`, "slash": "a/b", "labels": map[string]any{"a": "b"},
		"list": []any{"x"}, "spaces": " 3 ", "exponent": "1e3", "hex": "0x10", "version": "1.20", "colon": "12:30", "dashes": "---", "dash": "-", "minus": "-1", "tilde": "~",
	}
	for _, c := range []struct{ value, want, reason string }{
		{`{{s}}`, `"text"`, "a variable that is a scalar"},
		{`{{ s }}`, `"text"`, "with spaces"},
		{`"{{s}}"`, `"text"`, "in double quotes"},
		{`'{{s}}'`, `"text"`, "in single quotes"},
		{`x{{s}}y`, `"xtexty"`, "in a plain scalar"},
		{`{{i}}`, `1`, "a number"},
		{`"{{i}}"`, `"1"`, "in quotes it is text"},
		{`{{flag}}`, `true`, "a bool"},
		{`'{{flag}}'`, `"true"`, "in quotes it is text"},
		{`{{null}}`, `null`, "null"},
		{`{{labels}}`, `{"a":"b"}`, "an object"},
		{`'{{labels}}'`, `"{\"a\":\"b\"}"`, "in quotes it is text"},
		{`{{list}}`, `["x"]`, "a list"},
		{`{{three}}`, `3`, "a string is read as a plain scalar"},
		{`"{{three}}"`, `"3"`, "not in quotes"},
		{`{{three}}{{three}}`, `33`, "nor if it is put together"},
		{`{{yes}}`, `true`, "as YAML 1.1 reads it"},
		{`yes`, `true`, "as it reads the policy's own"},
		{`"yes"`, `"yes"`, "not in quotes"},
		{`{{empty}}`, `null`, "nothing is null"},
		{`"{{empty}}"`, `""`, "not in quotes"},
		{`{{tilde}}`, `null`, "a tilde is null"},
		{`{{hex}}`, `16`, "a number in base 16"},
		{`{{exponent}}`, `1000`, "a number with exponent"},
		{`{{version}}`, `1.2`, "a version is a number, as in Kyverno"},
		{`{{minus}}`, `-1`, "a negative number"},
		{`{{spaces}}`, `3`, "spaces around"},
		{`{{colon}}`, `"12:30"`, "no number in base 60"},
		{`{{dashes}}`, `"---"`, "no document"},
		{`{{dash}}`, `"-"`, "no list"},
		{`{{flow}}`, `"{a: b}"`, "a value is no structure"},
		{`{{hostile}}`, `"a\n- op: remove\n  path: /m"`, "a value is no operation"},
		{`"{{quote}}"`, `"\""`, "a value does not end a quote"},
		{`{{quote}}`, `"\""`, "nor start one"},
		{`{{ s || '' }}`, `"text"`, "quotes in a variable"},
		{`'{{ s || '' }}'`, `"text"`, "in quotes"},
		{`'{{ "s" }}'`, `"text"`, "a quoted name"},
		{`'{{ labels.{{ 'a' }} }}'`, `"b"`, "variables in variables"},
		{`{{ {a: s} }}`, `{"a":"text"}`, "braces in a variable"},
		{`{a: {{s}}, b: [{{i}}, "{{i}}"]}`, `{"a":"text","b":[1,"1"]}`, "in a flow"},
		{`{"{{s}}": x}`, `{"text":"x"}`, "as a key"},
		{`{{{s}}: x}`, ``, "braces that do not fit"},
		{`'\{{s}}'`, `"{{s}}"`, "escaped"},
		{`'\{{s}} {{s}}'`, `"{{s}} text"`, "escaped beside a variable"},
		{"|\n    a {{s}}\n    b", `"a text\nb"`, "in a block"},
		{">-\n    {{three}}", `"3"`, "in a folded block it is text"},
		{"\n  - \"-c\"\n  - sleep {{ i }}", `["-c","sleep 1"]`, "in a list of text"},
		{"x # {{ comment }}", `"x"`, "a comment has no variables"},
		{"{{ s |\n      to_upper(@) }}", `"TEXT"`, "over two lines"},
		{`variable`, `"variable"`, "the policy's own words"},
		{`variable0x{{s}}variable_0_`, `"variable0xtextvariable_0_"`, "are not mistaken for a mark"},
		{`1.20`, `1.2`, "a number"},
		{`2001-01-01`, `"2001-01-01"`, "a date is text"},
	} {
		j, err := patch.CompileJSON(newEngine(t), "- op: add\n  path: /a\n  value: "+c.value)
		if c.want == "" {
			if err == nil {
				t.Errorf("%s: %s is accepted", c.reason, c.value)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %s: %v", c.reason, c.value, err)
			continue
		}
		got, err := j.Apply(data, map[string]any{})
		if was := text(t, got["a"]); err != nil || was != c.want {
			t.Errorf("%s: %s is %s, %v; want %s", c.reason, c.value, was, err, c.want)
		}
	}
}

func TestJSONPaths(t *testing.T) {
	data := variable.Context{"i": 1.0, "name": "a/b", "escaped": "a~1b", "minus": "-1", "empty": "", "labels": map[string]any{}}
	for _, c := range []struct{ path, want, reason string }{
		{`/l/{{i}}/x`, `{"l":[{},{"x":"v"}]}`, "an index"},
		{`"/l/{{i}}/x"`, `{"l":[{},{"x":"v"}]}`, "in quotes"},
		{`{{ 'x' }}`, `"x" is no JSON pointer`, "no pointer"},
		{`/m/{{escaped}}`, `{"l":[{},{}],"m":{"a/b":"v"}}`, "escaped"},
		{`/m/{{name}}`, `{"l":[{},{}],"m":{"a":{"b":"v"}}}`, "a slash in a value is a slash in the path, as in Kyverno"},
		{`/l/{{minus}}`, `{"l":[{},{},"v"]}`, "a negative index"},
		{`"{{empty}}"`, `whole object`, "the whole object"},
		{`/m/{{missing}}`, `variable {{missing}}`, "not defined"},
		{`/m/~{{i}}`, `{"l":[{},{}],"m":{"/":"v"}}`, "half of an escape"},
		{`/m/~2`, ``, "no escape"},
	} {
		j, err := patch.CompileJSON(newEngine(t), "- {op: add, value: v, path: "+c.path+"}")
		if (c.want == "") != (err != nil) {
			t.Errorf("%s: %v", c.reason, err)
		}
		if err != nil {
			continue
		}
		got, err := apply(t, j, data, object(t, `{l: [{}, {}]}`))
		was := text(t, got)
		if err != nil {
			was = err.Error()
		}
		if was != c.want && (err == nil || !strings.Contains(was, c.want)) {
			t.Errorf("%s: %s: got %s; want %s", c.reason, c.path, was, c.want)
		}
	}
}

// TestJSONVariables: an operation of which something is not defined is none.
func TestJSONVariables(t *testing.T) {
	data := variable.Context{"name": "x", "value": map[string]any{"{{name}}": "{{value}}"}}
	for _, c := range []struct{ patch, want, reason string }{
		{`{op: copy, from: "/m/{{name}}", path: /a}`, `{"a":"y","m":{"x":"y"}}`, "from the path in a variable"},
		{`{op: copy, from: "/m/{{missing}}", path: /a}`, `variable {{missing}}`, "from one that is not defined"},
		{`{op: move, from: "{{missing}}", path: /a}`, `variable {{missing}}`, "from one that is not defined, and nothing else"},
		{`{op: copy, from: "{{name}}", path: /a}`, `"x" is no JSON pointer`, "from one that is no pointer"},
		{`{op: add, path: /a, value: "{{value.missing || value}}"}`, `{"a":{"{{name}}":"{{value}}"},"m":{"x":"y"}}`, "a value, which is data"},
		{`{op: add, path: /a, value: ["{{missing}}"]}`, `variable {{missing}}`, "a value that is not defined"},
		{`{op: replace, path: /m, value: "{{missing}}"}`, `variable {{missing}}`, "and nothing else"},
		{`{op: test, path: /nope, value: "{{missing}}"}`, `variable {{missing}}`, "which is not null, unlike a missing member"},
	} {
		got, err := apply(t, mustJSON(t, []any{read(t, c.patch)}), data, object(t, `{m: {x: "y"}}`))
		was := text(t, got)
		if err != nil {
			was = err.Error()
		}
		if was != c.want && (err == nil || !strings.Contains(was, c.want)) {
			t.Errorf("%s: %s: got %s; want %s", c.reason, c.patch, was, c.want)
		}
	}
}

func TestCompileJSONErrors(t *testing.T) {
	for _, c := range []struct {
		patch              any
		path, want, reason string
	}{
		{"", "", "found nothing", "nothing"},
		{"# x", "", "found nothing", "a comment"},
		{"a: b", "", "want a list of operations, found an object", "an object"},
		{"[]", "", "found none", "no operation"},
		{[]any{}, "", "found none", "an empty list"},
		{7, "", "found a number", "a number"},
		{[]any{map[string]any{"op": "add", "path": "/a", "value": struct{}{}}}, "", "not JSON", "no JSON"},
		{nil, "", "found null", "null"},
		{"[x]", "/0", "want an operation", "a string for an operation"},
		{[]any{"x"}, "/0", "want an operation, found a string", "a string in a list"},
		{"[{op: destroy, path: /a}]", "/0/op", "want add, remove", "no such operation"},
		{"[{path: /a}]", "/0/op", "want add, remove", "no op"},
		{"[{op: remove}]", "/0/path", "want a JSON pointer, found null", "no path"},
		{"[{op: remove, path: [a]}]", "/0/path", "want a JSON pointer, found a list", "a list for a path"},
		{read(t, "[{op: remove}]"), "/0/path", "want a JSON pointer, found null", "no path in a list"},
		{read(t, "[{op: remove, path: 7}]"), "/0/path", "want a JSON pointer, found a number", "a number for a path in a list"},
		{"[{op: remove, path: a}]", "/0/path", "no JSON pointer", "no pointer"},
		{"[{op: remove, path: ''}]", "/0/path", "whole object", "the whole object"},
		{"[{op: remove, path: /a~2}]", "/0/path", "~0", "a bad escape"},
		{"[{op: add, path: /a}]", "/0/value", "is missing", "no value"},
		{"[{op: test, path: /a}]", "/0/value", "is missing", "no value to test"},
		{"[{op: remove, path: /a, value: 1}]", "/0/value", "no such field", "a value to remove"},
		{"[{op: copy, path: /a}]", "/0/from", "want a JSON pointer", "no from"},
		{"[{op: add, path: /a, value: 1, from: /b}]", "/0/from", "no such field", "from for add"},
		{"[{op: add, path: /a, value: 1, comment: x}]", "/0/comment", "no such field", "an unknown field"},
		{"[{op: add, path: /a, value: {b: 1, b: 2}}]", "/0/value/b", "is there twice", "a key twice"},
		{"[{op: add, path: /a, value: 1}]\n---\n[]", "", "several", "two documents"},
		{"[{op: add, path: /a, value: &x 1}, {op: add, path: /a, value: *x}]", "/1/value", "alias", "an alias"},
		{"{{ ops }}", "", "want a list of operations", "a variable for the operations"},
		{"- {{ op }}", "/0", "want an operation", "a variable for an operation"},
		{"- {op: '{{ op }}', path: /a}", "/0/op", "cannot stand here", "a variable operation"},
		{"- {op: remove, path: /a, '{{ x }}': b}", "/0/{{ x }}", "no such field", "a variable field"},
		{"- op: add\n  path: /a\n  value: 1\n  {{ more }}", "", "no YAML", "a variable for fields"},
		{"- {op: add, path: /a, value: '{{ x'}", "", "not closed", "not closed"},
		{"- {op: add, path: /a, value: [1, '{{ x. }}']}", "/0/value/1", "SyntaxError", "a bad expression"},
		{"- {op: remove, path: '/a/{{ x. }}'}", "/0/path", "SyntaxError", "a bad expression in a path"},
		{read(t, "[{op: add, path: /a, value: ['{{ x. }}']}]"), "/0/value/0", "SyntaxError", "a bad expression in a list"},
		{read(t, "[{op: 7, path: /a}]"), "/0/op", "found a number", "a number for op"},
		{strings.Repeat("[", 300) + strings.Repeat("]", 300), "", "exceeds the bound", "too deep"},
		{strings.Repeat("- {op: remove, path: /a}\n", 10_001), "", "exceeds the bound", "too many operations"},
		{strings.Repeat("#", 3<<20+1), "", "exceeds the bound", "too long"},
		{"[{op: remove, path: " + strings.Repeat("/a", 201) + "}]", "/0/path", "exceeds the bound", "too long a path"},
	} {
		_, err := patch.CompileJSON(newEngine(t), c.patch)
		compile := (*variable.CompileError)(nil)
		if !errors.As(err, &compile) || !strings.Contains(err.Error(), c.want) || c.path != "" && compile.Path != c.path {
			t.Errorf("%.80v: %v; want %s at %s: %s", c.patch, err, c.want, c.path, c.reason)
		}
	}
}

func TestJSONBounds(t *testing.T) {
	if _, err := patch.CompileJSON(newEngine(t), strings.Repeat("- {op: remove, path: /a}\n", 10_000)); err != nil {
		t.Errorf("as many operations as may be: %v", err)
	}
	doubling := strings.Repeat("- {op: copy, from: /a, path: /a/-}\n", 60)
	for _, c := range []struct {
		patch, object string
		fits          bool
		reason        string
	}{
		{strings.Repeat("- {op: copy, from: /a/0, path: /a/-}\n", 60), `{a: [x]}`, true, "sixty copies"},
		{doubling, `{a: [x]}`, false, "copies of copies"},
		{"- {op: add, path: /m" + strings.Repeat("/a", 150) + ", value: x}", `{}`, true, "deep"},
		{"- {op: add, path: /m" + strings.Repeat("/a", 150) + ", value: " + strings.Repeat("[", 60) + strings.Repeat("]", 60) + "}", `{}`, false, "too deep"},
	} {
		_, err := apply(t, mustJSON(t, c.patch), nil, object(t, c.object))
		if c.fits != (err == nil) || err != nil && !errors.Is(err, patch.ErrTooLarge) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}
