package yamltemplate_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/patch/internal/yamltemplate"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func engine(tb testing.TB) *jmespath.Engine {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

// evaluate reads a text and fills in variables. A text that is refused when it is read is a
// CompileError.
func evaluate(t *testing.T, text string) (any, error) {
	t.Helper()
	document, err := yamltemplate.Read(engine(t), text)
	var node yamltemplate.Node
	if err == nil {
		node, err = document.Value(document.Root, "")
	}
	if err != nil {
		if compile := (*variable.CompileError)(nil); !errors.As(err, &compile) {
			t.Errorf("%.80s: %v is no CompileError", text, err)
		}
		return nil, err
	}
	return node.Value(variable.Context{"a": 1.0, "b": "text", "long": strings.Repeat("1", 64), "longer": strings.Repeat("1", 65), "comment": "3 # x"})
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ text, want, reason string }{
		{"x: {{a}}", "map[x:1]", "a plain scalar keeps its type"},
		{"x: '{{a}}'", "map[x:1]", "a quoted one is text"},
		{"{{b}}: [{{a}}, y]", "map[text:[1 true]]", "a key"},
		{"variable: variable_0_", "map[variable:variable_0_]", "words that look like a mark"},
		{`x: "\x76ariable_0_ \x76ariable_-1_ \x76ariable_x_ \x76ariable_"`, "map[x:variable_0_ variable_-1_ variable_x_ variable_]", "that YAML spells"},
		{`x: "\x76ariable_1_ {{b}}"`, "map[x:variable_1_ text]", "beside a variable"},
		{`x: "\x76ariable_x_ {{b}}"`, "map[x:variable_x_ text]", "and no number, which is not the first variable"},
		{`x: "\x7b{b}}"`, "map[x:{{b}}]", "braces that YAML spells are text"},
		{`x: "\$(a) {{b}} \$(c)"`, "map[x:$(a) text $(c)]", "escaped references"},
		{`x: '\{{ a'`, "map[x:{{ a]", "escaped braces that nothing closes"},
		{"x: {{ {y: a}}}", "map[x:map[y:1]]", "braces that end beside those of the variable"},
		{"x: [{{ {y: a}}}, 2]", "map[x:[map[y:1] 2]]", "where a brace too many ends it all"},
		{"x: [{{ {y: {z: a}}}}, 2]", "map[x:[map[y:map[z:1]] 2]]", "braces in braces"},
		{"x: [{{ {y: '{{a}}'}}}, 2]", "map[x:[map[y:1] 2]]", "a variable in braces"},
		{"x: [{{ '{{ {y: a}.y}}' }}, 2]", "map[x:[1 2]]", "braces in a variable in a variable"},
		{"x: [{{ {y: a}}, 2]", "", "braces that nothing closes"},
		{"x: {y: {{b}}, z: 1}", "map[x:map[y:text z:1]]", "a variable before what has none"},
		{"x: [{{b}}, 1]", "map[x:[text 1]]", "in a list, too"},
		{"x: {{long}}", "map[x:1.1111111111111112e+63]", "the longest number"},
		{"x: {{longer}}", "map[x:" + strings.Repeat("1", 65) + "]", "one digit more is text"},
		{"x: {{comment}}", "map[x:3 # x]", "a value has no comments"},
		{"x: .inf", "map[x:.inf]", "no number of JSON"},
		{"x: -", "", "an element outside of a list"},
		{"x: $(a) {{b}}", "", "a reference"},
		{"x: {{b}} $(a)", "", "a reference behind a variable"},
		{"x: {{ a", "", "not closed"},
		{"x: [", "", "no YAML"},
		{"x: &a 1\ny: *a", "", "an alias"},
		{"? [a]\n: b", "", "a list for a key"},
		{"x: 1\nx: 2", "", "a key twice"},
		{"{{b}}: 1\ntext: 2", "", "a key twice when variables are filled in"},
		{"", "", "nothing"},
		{"{{ b. }}: 1", "", "a bad expression in a key"},
		{"x: {y: '{{ b. }}'}", "", "in an object"},
		{"x: {{missing}}", "", "not defined"},
		{"x: '{{missing}}'", "", "not defined in quotes"},
		{"x: [{{missing}}]", "", "not defined in a list"},
		{"{{missing}}: x", "", "not defined in a key"},
	} {
		if got, err := evaluate(t, c.text); (c.want == "") != (err != nil) || err == nil && fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, %v; want %s", c.reason, got, err, c.want)
		}
	}
}

// TestBounds has the longest and the deepest text.
func TestBounds(t *testing.T) {
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for _, c := range []struct {
		text   string
		fits   bool
		reason string
	}{
		{"x #" + strings.Repeat("#", 3<<20-3), true, "the longest"}, {"x #" + strings.Repeat("#", 3<<20-2), false, "one byte more"},
		{nested(201), true, "the deepest"}, {nested(202), false, "one list more"},
	} {
		if _, err := evaluate(t, c.text); c.fits != (err == nil) || err != nil && !errors.Is(err, jmespath.ErrTooLarge) {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}

// TestParts covers the types that the parts of a document are read as.
func TestParts(t *testing.T) {
	document, err := yamltemplate.Read(engine(t), "[plain, '{{a}}', [], {}]")
	if err != nil {
		t.Fatal(err)
	}
	parts := document.Root.([]any)
	if got, err := document.Constant(parts[0], "at", "a word"); got != "plain" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, part := range append(parts[1:], nil) {
		if got, err := document.Constant(part, "at", "a word"); err == nil {
			t.Errorf("%v is the constant %q", part, got)
		}
	}
	if template, err := document.Text(parts[1], "at"); err != nil || template.Plain() {
		t.Errorf("a text with a variable: %v", err)
	}
	for _, part := range append(parts[2:], nil) {
		if _, err := document.Text(part, "at"); err == nil {
			t.Errorf("%v is a text", part)
		}
	}
	if _, err := document.Value(nil, "at"); err == nil {
		t.Error("nothing is a value")
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
