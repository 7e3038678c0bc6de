package variable_test

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func newEngine(tb testing.TB) *jmespath.Engine {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

var ctx = variable.Context{
	"request": map[string]any{"namespace": "prod", "replicas": 3.0, "labels": map[string]any{"a": "b"}, "nothing": nil,
		"hostile": "') || ('x", "template": "{{request.namespace}}"},
	"keys": map[string]any{"data": map[string]any{"prod": "PEM"}},
	"list": []any{"x", "y"},
	"half": strings.Repeat("h", 1<<20),
}

func TestExecute(t *testing.T) {
	tests := []struct {
		template any
		want     any
		reason   string
	}{
		{"plain", "plain", "nothing to do"},
		{7, 7.0, "a number"},
		{"{{request.namespace}}", "prod", "a variable alone"},
		{"{{ request.replicas }}", 3.0, "keeps its type"},
		{"{{ request.labels }}", map[string]any{"a": "b"}, "keeps its type"},
		{"{{ request.nothing }}", nil, "null is a value"},
		{"ns-{{request.namespace}}-{{request.replicas}}", "ns-prod-3", "in a longer string"},
		{" {{request.replicas}}", " 3", "a space makes it a longer string"},
		{"l={{list}} o={{request.labels}}", `l=["x","y"] o={"a":"b"}`, "JSON in a string"},
		{"{{ keys.data.{{request.namespace}} }}", "PEM", "a variable in a variable"},
		{"{{ keys.data.{{ '{{request.namespace}}' }} }}", "PEM", "two levels"},
		{"{{ to_upper('{{request.namespace}}') }}", "PROD", "in a string of an expression"},
		{"{{ to_upper('{{request.hostile}}') }}", "') || ('X", "which a value does not leave"},
		{"{{request.template}}", "{{request.namespace}}", "a value is not evaluated"},
		{"{{ request.missing || 'none' }}", "none", "a default"},
		{"{{ request.missing || `{}` }}", map[string]any{}, "braces of a literal"},
		{"{{ `{\"a\":{\"b\":1}}`.a.b }}", 1.0, "braces in braces"},
		{"{{ request.{n: namespace} }}", map[string]any{"n": "prod"}, "braces of a hash"},
		{"{{ request.{n: namespace}}}", map[string]any{"n": "prod"}, "three braces"},
		{"{{ list[{{ `1` }}] }}", "y", "an index"},
		{`\{{ request.namespace }}`, "{{ request.namespace }}", "escaped"},
		{`\{{ {{request.namespace}} }}`, "{{ prod }}", "escaped around a variable"},
		{`a \{{b}} {{request.namespace}}`, "a {{b}} prod", "escaped beside a variable"},
		{"$(./../x)", "$(./../x)", "references are left alone"},
		{"{ {x} }", "{ {x} }", "single braces are text"},
		{[]any{"{{request.namespace}}", "x"}, []any{"prod", "x"}, "in a list"},
		{map[string]any{"k-{{request.namespace}}": "{{list}}", "n": 1}, map[string]any{"k-prod": []any{"x", "y"}, "n": 1.0}, "in keys and values"},
		{map[string]any{"a": []any{`\{{x}}`}}, map[string]any{"a": []any{"{{x}}"}}, "escaped inside"},
		{"", "", "an empty string"},
	}
	for _, test := range tests {
		template, err := variable.Compile(newEngine(t), test.template)
		var got any
		if err == nil {
			got, err = template.Execute(ctx)
		}
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%v = %#v, %v; want %#v: %s", test.template, got, err, test.want, test.reason)
		}
	}
}

func TestExecuteErrors(t *testing.T) {
	template, err := variable.Compile(newEngine(t), map[string]any{"a": []any{map[string]any{"b/c": "x {{ request.missing }}"}}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = template.Execute(ctx)
	failed := (*variable.Error)(nil)
	if !errors.As(err, &failed) || failed.Variable != "request.missing" || failed.Path != "/a/0/b~1c" {
		t.Errorf("got %#v", err)
	}
	if undefined := (*jmespath.UndefinedError)(nil); !errors.As(err, &undefined) {
		t.Errorf("%v does not say that it is undefined", err)
	}
	for _, test := range []struct {
		template     any
		want, reason string
	}{
		{"{{ to_upper(list) }}", "want a string", "a wrong type"},
		{"{{ request.missing }}", "value: variable {{request.missing}}", "a value that stands nowhere"},
		{"{{ keys.data.{{ request.missing }} }}", "request.missing", "the inner variable is to blame"},
		{"{{ to_string('{{ request.missing }}') }}", "request.missing", "a missing value is not null in a variable around it"},
		{map[string]any{"k-{{ request.missing }}": 1}, "request.missing", "in a key"},
		{strings.Repeat("{{ half }}", 2) + "x", "exceeds the bound", "a byte more than a text may have"},
	} {
		template, err := variable.Compile(newEngine(t), test.template)
		if err != nil {
			t.Fatal(err)
		}
		_, err = template.Execute(ctx)
		if undefined := (*jmespath.UndefinedError)(nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v (undefined %v): %s", test.template, err, errors.As(err, &undefined), test.reason)
		}
	}
	template, err = variable.Compile(newEngine(t), strings.Repeat("{{ half }}", 2))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := template.Execute(ctx); err != nil || len(fmt.Sprint(got)) != 2<<20 {
		t.Errorf("as long as a text may be: %v", err)
	}
	template, err = variable.Compile(newEngine(t), map[string]any{"{{request.namespace}}": 1, "prod": 2})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := template.Execute(ctx); err == nil {
		t.Errorf("two keys became one: %v", got)
	}
}

func TestCompileErrors(t *testing.T) {
	deep := func(levels int) any {
		value := any("x")
		for range levels {
			value = []any{value}
		}
		return value
	}
	nested := func(levels int) string {
		return strings.Repeat("{{a.", levels-1) + "{{a}}" + strings.Repeat("}}", levels-1)
	}
	for _, template := range []any{deep(200), nested(201), map[string]any{"k {{ a }}": "{{ a }}"}} {
		if _, err := variable.Compile(newEngine(t), template); err != nil {
			t.Errorf("as deep as may be: %v", err)
		}
	}
	for _, test := range []struct {
		template     any
		want, reason string
	}{
		{"{{ request.namespace", "not closed", "never closed"},
		{"{{ request.namespace }", "not closed", "half closed"},
		{"{{ a {{ b }}", "not closed", "only the inner one is closed"},
		{"{{ }}", "empty", "no expression"},
		{"{{ a b }}", "SyntaxError", "no expression"},
		{"{{ frobnicate(a) }}", "no function", "no such function"},
		{"{{ {{ a }} }}", "variable {{a}} is in the place of an expression", "data that would be an expression"},
		{"{{ length({{ a }}) }}", "variable {{a}} is in the place of an expression", "an argument"},
		{"{{ b[?c == {{ a }}] }}", "variable {{a}} is in the place of an expression", "an operand"},
		{"{{ [b, {{ a }}] }}", "variable {{a}} is in the place of an expression", "an item"},
		{"{{ b.'{{ length({{ a }}) }}' }}", "variable {{a}} is in the place of an expression", "in a variable in a variable"},
		{[]any{"x", map[string]any{"k": "{{ a. }}"}}, "/1/k: ", "the place is named"},
		{map[string]any{"k {{ a": 1}, "not closed", "a key that is never closed"},
		{nested(202), "exceeds the bound", "a level too many"},
		{nested(300), "exceeds the bound", "too many levels"},
		{deep(201), "exceeds the bound", "a level too deep"},
		{deep(300), "exceeds the bound", "too deep"},
		{struct{}{}, "not JSON", "no JSON"},
	} {
		_, err := variable.Compile(newEngine(t), test.template)
		if compile := (*variable.CompileError)(nil); !errors.As(err, &compile) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v does not say %q: %s", test.template, err, test.want, test.reason)
		}
	}
}

func TestOutside(t *testing.T) {
	for _, c := range []struct {
		template any
		written  string
		reason   string
	}{
		{"plain", "plain", "no variable"},
		{"", "", "an empty text"},
		{`\{{ a }}`, "{{ a }}", "escaped"},
		{"{{ a }}", "", "a variable alone"},
		{"a {{ x }}", "a ", "text before it"},
		{"{{ x }} b", " b", "text behind it"},
		{"a {{ x }} b {{ y }}", "a  b ", "text before it and behind it"},
		{"{{ x }} a {{ y }} b", " a  b", "text behind both"},
		{7, "", "a number"},
		{[]any{"a"}, "", "a list"},
	} {
		template, err := variable.Compile(newEngine(t), c.template)
		if err != nil {
			t.Fatal(err)
		}
		if written := template.Outside(); written != c.written {
			t.Errorf("%s: %q", c.reason, written)
		}
	}
}

func TestPieces(t *testing.T) {
	large := map[string]any{"a": strings.Repeat("x", 1<<20), "b": 7.0}
	for _, c := range []struct {
		template any
		want     []variable.Piece
		fails    string
		reason   string
	}{
		{"plain", []variable.Piece{{Text: "plain"}}, "", "no variable"},
		{"{{ b }}", []variable.Piece{{Text: "7", FromVariable: true}}, "", "a variable alone"},
		{"a/{{ b }}/c{{ 'd' }}", []variable.Piece{{Text: "a/"}, {Text: "7", FromVariable: true}, {Text: "/c"}, {Text: "d", FromVariable: true}}, "", "text between"},
		{`\{{ b }}{{ b }}`, []variable.Piece{{Text: "{{ b }}"}, {Text: "7", FromVariable: true}}, "", "escaped"},
		{"{{ none }}", nil, "none", "a variable that is not there"},
		{"{{ a }} {{ a }}", nil, "bytes", "too large together"},
		{"{{ a }}{{ a }}", slices.Repeat([]variable.Piece{{Text: strings.Repeat("x", 1<<20), FromVariable: true}}, 2), "", "as large as may be"},
	} {
		template, err := variable.Compile(newEngine(t), c.template)
		if err != nil {
			t.Fatal(err)
		}
		got, err := template.Pieces(variable.Context(large))
		if !slices.Equal(got, c.want) || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
			t.Errorf("%s: %d pieces, %v", c.reason, len(got), err)
		}
	}
}

func TestPlainCostsNothing(t *testing.T) {
	value := map[string]any{"a": []any{"x", map[string]any{"b": true}}}
	template, err := variable.Compile(newEngine(t), value)
	if err != nil {
		t.Fatal(err)
	}
	if !template.Plain() {
		t.Error("there is no variable in it")
	}
	if empty, err := variable.Compile(newEngine(t), ""); err != nil || !empty.Plain() {
		t.Errorf("an empty text has a variable in it: %v", err)
	}
	if allocations := testing.AllocsPerRun(10, func() { _, _ = template.Execute(ctx) }); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
	template, err = variable.Compile(newEngine(t), map[string]any{"a": "{{list}}"})
	if err != nil {
		t.Fatal(err)
	}
	if template.Plain() {
		t.Error("there is a variable in it")
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"{{a}}", `\{{a}}`, "{{ {{a}} }}", "{{ a.{b: c}}}", "x{{`{}`}}y", "{{'{{a}}'}}"} {
		f.Add(seed)
	}
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		template, err := variable.Compile(engine, s)
		if err != nil {
			return
		}
		got, err := template.Execute(variable.Context{"a": "x"})
		if err == nil && !strings.Contains(s, "{{") && got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}

func ExampleTemplate_Execute() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		fmt.Println(err)
		return
	}
	template, err := variable.Compile(engine, "image of {{ keys.{{request.namespace}} || 'nobody' }}")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(template.Execute(variable.Context{
		"request": map[string]any{"namespace": "prod"},
		"keys":    map[string]any{"prod": "the release team"},
	}))
	// Output: image of the release team <nil>
}

func TestSubstitute(t *testing.T) {
	constants := variable.Context{"field": "owner", "filter": "[?name == 'x']", "n": 2.0, "names": map[string]any{"a": "b"}}
	for _, c := range []struct{ source, want, reason string }{
		{"{{ field }}", "owner", "a constant alone"},
		{"length({{ field }})", "length(owner)", "in a call"},
		{"items{{ filter }} | [0]", "items[?name == 'x'] | [0]", "a part of an expression"},
		{"items[{{ n }}]", "items[2]", "a number in an index"},
		{"data.{{ names.{{ field }} || 'c' }}", "data.c", "a constant in a constant"},
		{"{{ to_upper(field) }}", "OWNER", "a function of a constant"},
		{"items[?a == '{{ request.name }}'].{{ field }}", "items[?a == '{{ request.name }}'].owner", "next to data"},
		{"{{ request.name }}", "{{ request.name }}", "data"},
		{"{{ request.name || field }}", "{{ request.name || field }}", "a constant, or data"},
		{"{{ names.{{ request.name }} }}", "{{ names.{{ request.name }} }}", "chosen by data"},
		{"{{ to_string(@) }}", "{{ to_string(@) }}", "anything"},
		{"{{ time_now() }}", "{{ time_now() }}", "the time is no constant"},
		{"{{ random(field) }}", "{{ random(field) }}", "nor is what is random"},
		{"{{ time_since('', field, field) }}", "{{ time_since('', field, field) }}", "nor a time since then"},
		{"{{ n }}", "{{ n }}", "all of it is no text"},
		{"{{ length({{ field }}) }}", "{{ length({{ field }}) }}", "an expression in a variable"},
		{`\{{ field }}`, `\{{ field }}`, "escaped"},
		{"{{ field", "{{ field", "not closed"},
		{"{{ field.x }}", "{{ field.x }}", "absent"},
	} {
		if got := variable.Substitute(newEngine(t), c.source, constants); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
