package variable_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func TestDeferredMembers(t *testing.T) {
	for _, c := range []struct {
		template any
		reads    string
		reason   string
	}{
		{"plain", "", "no variable"},
		{"{{ request.namespace }}", "", "another member"},
		{"{{ keys.a }}", "keys", "the member"},
		{"x {{ keys.a }} {{ keys.b }}", "keys", "twice, and found out once"},
		{"{{ request.{{ keys.c }} }}", "keys", "in a variable in a variable"},
		{map[string]any{"{{ keys.a }}": "x"}, "keys", "in a key"},
		{[]any{"{{ others }}", "{{ keys.a }}"}, "keys others", "both"},
	} {
		var read []string
		member := func(name string, value any) *variable.Deferred {
			return variable.Defer(func() (any, error) {
				read = append(read, name)
				return value, nil
			})
		}
		data := variable.Context{
			"request": map[string]any{"namespace": "prod"},
			"keys":    member("keys", map[string]any{"a": "1", "b": "2", "c": "namespace"}), "others": member("others", "o"),
		}
		template, err := variable.Compile(newEngine(t), c.template)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := template.Execute(data); err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
		names, known := template.Reads()
		for _, name := range strings.Fields(c.reads) {
			if !strings.Contains(strings.Join(names, " "), name) || !known {
				t.Errorf("%s: it reports that it reads %v", c.reason, names)
			}
		}
		if got := strings.Join(read, " "); len(got) != len(c.reads) || c.reads != "" && !strings.Contains(got, "keys") {
			t.Errorf("%s: found out %q, want %q", c.reason, got, c.reads)
		}
	}
}

// TestReadsAnything: a template that may read any member reports it, whatever is next to it.
func TestReadsAnything(t *testing.T) {
	for _, c := range []struct {
		template any
		known    bool
		reason   string
	}{
		{"{{ request.name }}", true, "one member"},
		{"{{ @ }}", false, "all of them"},
		{[]any{"{{ @ }}", "{{ request.name }}"}, false, "all of them, and one"},
		{[]any{"{{ request.name }}", "{{ @ }}"}, false, "one, and all of them"},
	} {
		template, err := variable.Compile(newEngine(t), c.template)
		if err != nil {
			t.Fatal(err)
		}
		if names, known := template.Reads(); known != c.known {
			t.Errorf("%s: %v %t", c.reason, names, known)
		}
	}
}

func TestDeferredErrors(t *testing.T) {
	gone := errors.New("the ConfigMap is gone")
	absent := &jmespath.UndefinedError{Expression: "x", Err: errors.New("is null")}
	for _, c := range []struct {
		text   string
		member error
		want   string // "" for a value
		reason string
	}{
		{"{{ keys.a }}", gone, "is gone", "a failure"},
		{"{{ keys.a || 'x' }}", gone, "is gone", "a failure is no absence"},
		{"{{ keys.a }}", absent, "is null", "absent"},
		{"{{ keys.a || 'x' }}", absent, "", "absent, with something in its place"},
	} {
		template, err := variable.Compile(newEngine(t), c.text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = template.Execute(variable.Context{"keys": variable.Defer(func() (any, error) { return nil, c.member })})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.reason, err)
		}
		if failed := (*variable.Error)(nil); err != nil && !errors.As(err, &failed) {
			t.Errorf("%s: %T", c.reason, err)
		}
	}
}

func TestDeferredIsFoundOutOnce(t *testing.T) {
	count := 0
	d := variable.Defer(func() (any, error) {
		count++
		return "x", nil
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if value, err := d.Value(); value != "x" || err != nil {
				t.Error(value, err)
			}
		})
	}
	all.Wait()
	if count != 1 {
		t.Errorf("found out %d times", count)
	}
}

func TestExpression(t *testing.T) {
	data := variable.Context{"request": map[string]any{"name": "b", "field": "image"}, "list": []any{"x"}}
	for _, c := range []struct{ source, want, reason string }{
		{"items[?name == '{{ request.name }}'] | [0].image", "two", "a variable in a filter"},
		{"items[0].image", "one", "no variable"},
		{"items[0].{{ request.field }}", "one", "a variable as a name"},
	} {
		e, err := variable.CompileExpression(newEngine(t), c.source, "")
		if err != nil {
			t.Fatal(err)
		}
		items := []any{map[string]any{"name": "a", "image": "one"}, map[string]any{"name": "b", "image": "two"}}
		if got, err := e.EvaluateOn(map[string]any{"items": items}, data); err != nil || got != c.want {
			t.Errorf("%s: %v, %v", c.reason, got, err)
		}
	}
	for source, want := range map[string]string{"": "empty", "a b": "SyntaxError", "}} {{ a": "empty", "a }} b": "not balanced", "frobnicate(a)": "no function",
		"{{ request.name }}": "{{request.name}} is in the place of an expression"} {
		_, err := variable.CompileExpression(newEngine(t), source, "/list")
		if err == nil || !strings.HasPrefix(err.Error(), "/list: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", source, err, want)
		}
	}
	e, err := variable.CompileExpression(newEngine(t), "list[0]", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := e.Evaluate(data); got != "x" || err != nil {
		t.Error(got, err)
	}
	if names, known := e.Reads(false); !known || strings.Join(names, "") != "list" {
		t.Error(names, known)
	}
	if names, known := e.Reads(true); !known || len(names) > 0 {
		t.Error(names, known)
	}
}

func TestContextSettles(t *testing.T) {
	gone := errors.New("gone")
	good, bad := variable.Defer(func() (any, error) { return 1.0, nil }), variable.Defer(func() (any, error) { return nil, gone })
	absent := variable.Defer(func() (any, error) { return nil, &jmespath.UndefinedError{Expression: "x", Err: errors.New("is null")} })
	if err := (variable.Context{"a": good, "b": "x", "c": absent}).Settle(); err != nil {
		t.Error(err)
	}
	data := variable.Context{"a": good}
	if err := data.With("b", bad).Settle(); !errors.Is(err, gone) {
		t.Error(err)
	}
	if len(data) != 1 {
		t.Error("With changed the context")
	}
}

func BenchmarkExecute(b *testing.B) {
	for _, c := range []struct {
		name     string
		template any
	}{
		{"plain", map[string]any{"a": []any{"x", true}}},
		{"path", "{{ request.namespace }}"},
		{"default", "{{ request.operation || 'BACKGROUND' }}"},
		{"deferred", "{{ keys.data.prod }}"},
		{"deferred-call", "{{ length(keys.data) }}"},
	} {
		b.Run(c.name, func(b *testing.B) {
			template, err := variable.Compile(newEngine(b), c.template)
			if err != nil {
				b.Fatal(err)
			}
			data := variable.Context{
				"request": map[string]any{"namespace": "prod"},
				"keys":    variable.Defer(func() (any, error) { return map[string]any{"data": map[string]any{"prod": "x"}}, nil }),
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := template.Execute(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleDefer() {
	d := variable.Defer(func() (any, error) { return "found out now", nil })
	fmt.Println(d.Value())
	// Output: found out now <nil>
}

// After a recovered panic the same context may be used again, and must not read null.
func TestDeferredAfterAPanic(t *testing.T) {
	d := variable.Defer(func() (any, error) { panic("a defect") })
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_, _ = d.Value()
	}()
	if value, err := d.Value(); value != nil || err == nil {
		t.Errorf("%v, %v; want an error", value, err)
	}
}
