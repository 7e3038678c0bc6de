package cue_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/cue"
)

// TestExpressionsAreBounded: no policy compiles a regular expression to a program without a bound.
func TestExpressionsAreBounded(t *testing.T) {
	const large, computed = "instructions", "computed from other"
	huge := strings.Repeat("a{1000}", 500)
	for _, c := range []struct{ policy, want, reason string }{
		{`predicate: x: =~"^a{500}$"`, "", "one of a usual size"},
		{`predicate: x: =~"HUGE"`, large, "one that is written out"},
		{`predicate: x: !~"HUGE"`, large, "one that must not match"},
		{`predicate: x: #"HUGE"#`, "", "a text that is none"},
		{`predicate: ok: "a" =~ "HUGE"`, large, "as an operation"},
		{`predicate: [=~"HUGE"]: string`, large, "for names of fields"},
		{"import \"regexp\"\npredicate: ok: regexp.Match(\"HUGE\", \"a\")", large, "as an argument"},
		{"import \"regexp\"\npredicate: ok: regexp.Match(\"^a$\", \"a\")", "", "a usual argument"},
		{"import r \"regexp\"\npredicate: ok: r.ReplaceAll(\"HUGE\", \"a\", \"b\")", large, "under another name"},
		{"import \"regexp\"\npredicate: {p: string, ok: regexp.Match(p, \"a\")}", computed, "as an argument from the data"},
		{"import \"regexp\"\npredicate: p: regexp.Match(\"a\")", computed, "the data as the expression"},
		{"import \"regexp\"\npredicate: p: regexp.Valid", computed, "a function that is not called"},
		{"import \"regexp\"\nr: regexp\npredicate: ok: r.Match(\"HUGE\", \"a\")", computed, "the package as a value"},
		{"#p: \"HUGE\"\npredicate: x: =~#p", large, "by a name"},
		{"#p: string\n#p: \"^a$\"\npredicate: x: =~#p", "", "a usual one by a name"},
		{"#p: *\"^a$\" | \"HUGE\"\npredicate: x: =~#p", large, "one of two"},
		{"#p: *\"^a$\" | string\npredicate: x: =~#p", computed, "any text as well"},
		{"predicate: {p: string, x: =~p}", computed, "one of the data"},
		{"#p: \"a{1000}\"\npredicate: x: =~\"" + strings.Repeat(`\(#p)`, 500) + "\"", large, "one that is joined"},
		{"#p: \"acme\"\npredicate: x: =~\"^https://\\(#p)/.*$\"", "", "a usual one that is joined"},
		{"#n: 1000\npredicate: x: =~\"" + strings.Repeat(`a{\(#n)}`, 500) + "\"", large, "a number that is joined"},
		{"#p: \"a{1000}\"\npredicate: x: =~(" + strings.Repeat("#p+", 20) + "#p)", large, "one that is added"},
		{"#a: \"x\"\n#b: #a+#a\n#c: #b+#b\n#d: #c+#c\n#e: #d+#d\n#f: #e+#e\n#g: #f+#f\n#h: #g+#g\n#i: #h+#h\n#j: #i+#i\n#k: #j+#j\n#l: #k+#k\n#m: #l+#l\n#n: #m+#m\npredicate: x: =~#n", computed, "names that multiply"},
		{"predicate: {" + strings.Repeat("x: =~\"a{1000}\"\n", 30) + "}", large, "many together"},
	} {
		_, err := cue.Compile(strings.ReplaceAll(c.policy, "HUGE", huge), cue.Options{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.reason, err, c.want)
		}
	}
}
