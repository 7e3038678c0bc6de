package celtext_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
)

// TestRename: a variable is replaced, and nothing that has its name.
func TestRename(t *testing.T) {
	for _, c := range []struct{ reason, of, want string }{
		{"a variable", "params.data.a == object.a", "v.params.data.a == object.a"},
		{"twice", "params.?a.orValue(1) < size(params)", "v.params.?a.orValue(1) < size(v.params)"},
		{"behind a question mark", "a ?params : 'b'[?params]", "a ?v.params : 'b'[?v.params]"},
		{"a member", "object.params + object . params + object.?params.b", "object.params + object . params + object.?params.b"},
		{"a part of a name", "myparams + params2 + _params", "myparams + params2 + _params"},
		{"a function", "params(1) + params (2)", "params(1) + params (2)"},
		{"a text", `'params' + "params" + r'\' + params`, `'params' + "params" + r'\' + v.params`},
		{"a quote in a text", `'\'params' + params`, `'\'params' + v.params`},
		{"three quotes", `"""a" params""" + params`, `"""a" params""" + v.params`},
		{"bytes", `rb'params' == params`, `rb'params' == v.params`},
		{"a comment", "a // params\n + params", "a // params\n + v.params"},
		{"a text that does not end", "'params", "'params"},
	} {
		if got := celtext.Rename(c.of, "params", "v.params"); got != c.want {
			t.Errorf("%s: %s, want %s", c.reason, got, c.want)
		}
	}
}
