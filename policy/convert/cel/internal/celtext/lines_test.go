package celtext_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/convert/cel/internal/celtext"
)

// TestLines breaks long expressions outside of texts, and changes nothing but space.
func TestLines(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, c := range []struct{ reason, text, want string }{
		{"a short one", "a && b", "a && b"},
		{"an operator", long + " && " + long, long + " &&\n" + long},
		{"the weaker operator", long + " && b || " + long, long + " && b ||\n" + long},
		{"a choice", long + " ? b : " + long, long + " ?\nb :\n" + long},
		{"a macro", "list.all(one, " + long + " && " + long + ")", "list.all(one,\n  " + long + " &&\n  " + long + ")"},
		{"a macro that is long itself", "list.all(one, " + long + long + " || b)", "list.all(one,\n  " + long + long + " ||\n  b)"},
		{"no operator in a text", "f('" + long + " && " + long + "')", "f('" + long + " && " + long + "')"},
		{"an escaped quote", `f('\' && ` + long + long + `')`, `f('\' && ` + long + long + `')`},
		{"a raw text that ends in a backslash", `f(r'\') && ` + long + long, `f(r'\') &&` + "\n" + long + long},
		{"a negation", "!(" + long + " && " + long + ")", "!(\n  " + long + " &&\n  " + long + ")"},
	} {
		got := celtext.Lines(c.text)
		if strings.Join(strings.Fields(got), "") != strings.Join(strings.Fields(c.text), "") {
			t.Errorf("%s: %s\nhas other signs than %s", c.reason, got, c.text)
		}
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.reason, got, c.want)
		}
	}
}
