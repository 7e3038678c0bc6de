package yamltemplate_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/patch/internal/yamltemplate"
	"github.com/quaymaster/quaymaster/policy/variable"
)

func engine(tb testing.TB) *jmespath.Engine {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ text, want, reason string }{
		{"x: {{a}}", "map[x:1]", "a plain scalar keeps its type"},
		{"x: '{{a}}'", "map[x:1]", "a quoted one is text"},
		{"{{b}}: [{{a}}, y]", "map[text:[1 true]]", "a key"},
		{"variable: variable_0_", "map[variable:variable_0_]", "words that look like a mark"},
		{`x: "\$(a) {{b}} \$(c)"`, "map[x:$(a) text $(c)]", "escaped references"},
		{"x: $(a) {{b}}", "", "a reference"},
		{"x: {{b}} $(a)", "", "a reference behind a variable"},
		{"x: {{ a", "", "not closed"},
		{"x: [", "", "no YAML"},
		{"x: &a 1\ny: *a", "", "an alias"},
		{"? [a]\n: b", "", "a list for a key"},
		{"x: 1\nx: 2", "", "a key twice"},
		{"", "", "nothing"},
	} {
		document, err := yamltemplate.Read(engine(t), c.text)
		if compile := (*variable.CompileError)(nil); (c.want == "") != (err != nil) || err != nil && !errors.As(err, &compile) {
			t.Errorf("%s: %v", c.reason, err)
		}
		if err != nil {
			continue
		}
		node, err := document.Value(document.Root, "")
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if got, err := node.Value(variable.Context{"a": 1.0, "b": "text"}); err != nil || fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, %v; want %s", c.reason, got, err, c.want)
		}
	}
}

func TestUnescape(t *testing.T) {
	for _, c := range []struct{ text, want, reason string }{
		{"x", "x", "nothing to do"},
		{`\$(POD_IP)`, "$(POD_IP)", "escaped"},
		{`a \$(A) \$(B)`, "a $(A) $(B)", "twice"},
		{"$(curl -s a)", "$(curl -s a)", "a word ends before it does"},
		{`\$(curl -s a)`, `\$(curl -s a)`, "so nothing is escaped"},
		{"$()", "$()", "nothing in it"},
		{"a $(", "a $(", "not closed"},
		{"$(POD_IP)", "", "a reference"},
		{"http://$(POD_IP):80", "", "in a text"},
		{`\$(A) $(B)`, "", "behind an escaped one"},
	} {
		if got, err := yamltemplate.Unescape(c.text); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v; want %q: %s", c.text, got, err, c.want, c.reason)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("x: {{a}}\ny: '{{ b || '' }}'\nz: |\n  {{c}}")
	f.Add(`{"a": "\{{b}}"}`)
	e := engine(f)
	f.Fuzz(func(t *testing.T, s string) {
		document, err := yamltemplate.Read(e, s)
		if err != nil {
			return
		}
		if node, err := document.Value(document.Root, ""); err == nil {
			_, _ = node.Value(variable.Context{"a": 1.0})
		}
	})
}
