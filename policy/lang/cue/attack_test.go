package cue_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/cue"
)

// times joins what a function makes of the first numbers.
func times(n int, one func(int) string, between string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = one(i)
	}
	return strings.Join(parts, between)
}

// TestAttacksAreRefused: what would evaluate for any time or grow to any size is
// refused before it is evaluated, and what only looks like it is not.
func TestAttacksAreRefused(t *testing.T) {
	same := func(s string) func(int) string { return func(int) string { return s } }
	for _, c := range []struct{ policy, want, reason string }{
		{"#A: {n: int, if n > 0 {next: #A & {\"n\": n-1}}}\npredicate: #A", "refers to itself", "recursion"},
		{"#A: {a?: #B}\n#B: {b?: #A}\npredicate: #A", "refers to itself", "recursion by way of another"},
		{"#A: {a?: #A, b: limit}\nlimit: 1\npredicate: #A", "refers to itself", "recursion, and then something else"},
		{"X=#A: {a?: X}\npredicate: #A", "refers to itself", "recursion by another name"},
		{"predicate: {x: [for e in predicate.y {e}], y: [...]}", "refers to itself", "recursion, by the names"},
		{"predicate: {x: [if predicate.y > 0 {predicate.x}], y: int}", "refers to itself", "recursion below a condition on a sibling"},
		{"#A: {n: int, if len(#A.next) > 0 {next: #A}}\npredicate: #A", "refers to itself", "recursion below a condition on itself"},
		{"predicate: {" + times(10, func(i int) string { return fmt.Sprintf("x: {a%d: 1} | {b%d: 1}", i, i) }, "\n") + "}", "1024 combinations", "alternatives of one field"},
		{"predicate: x: " + times(10, same("(1|2)"), " & "), "1024 combinations", "alternatives of one value"},
		{"#A: 1 | 2 | 3\npredicate: x: " + times(6, same("#A"), " & "), "729 combinations", "alternatives by a definition"},
		{"#A: {k: 1 | 2 | 3}\npredicate: x: " + times(6, same("#A.k"), " & "), "729 combinations", "alternatives of a definition's field"},
		{"#A: {k: 1 | 2 | 3} | {k: 4}\npredicate: x: " + times(6, same("#A.k"), " & "), "729 combinations", "of one of several"},
		{"#A: *1 | 2 | 3\npredicate: x: " + times(6, same("(#A)"), " & "), "729 combinations", "one of them the default"},
		{"#A: {_, 1 | 2 | 3}\npredicate: x: " + times(6, same("#A"), " & "), "729 combinations", "embedded in a definition"},
		{"predicate: {" + times(8, func(i int) string { return fmt.Sprintf("{a%d: 1} | {b%d: 1}", i, i) }, "\n") + "}", "256 combinations", "embedded alternatives"},
		{"predicate: " + strings.Repeat("[", 300) + strings.Repeat("]", 300), "nested deeper", "depth"},
		{strings.Repeat("a: ", 10000) + "1\npredicate: _", "nested deeper", "depth without brackets"},
		{"predicate: " + strings.Repeat("!", 30000) + "true", "nesting depth", "depth by signs"},
		{"predicate: " + strings.Repeat("(", 20000) + "1" + strings.Repeat(")", 20000), "nested deeper", "depth by parentheses"},
	} {
		began := time.Now()
		_, err := cue.Compile(c.policy, cue.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || time.Since(began) > 30*time.Second {
			t.Errorf("%s: %v after %s; want %q", c.reason, err, time.Since(began), c.want)
		}
	}
	for _, c := range []struct{ policy, data, reason string }{
		{"predicate: {" + times(20, func(i int) string { return fmt.Sprintf("x%d?: \"LOW\" | \"MEDIUM\" | \"HIGH\"", i) }, "\n") + "}", `{"predicate":{"x1":"LOW"}}`, "alternatives of many fields"},
		{"predicate: list: [...{kind: \"a\", x: 1 | 2} | {kind: \"b\", x: 3 | 4}]", `{"predicate":{"list":[{"kind":"b","x":3}]}}`, "alternatives within alternatives"},
		{"#P: {name: string}\npredicate: {a: #P, b: #P}", `{"predicate":{"a":{"name":"x"},"b":{"name":"y"}}}`, "one definition twice"},
		{"predicate: {name: string, other: name}", `{"predicate":{"name":"x","other":"x"}}`, "a field beside"},
		{"predicate: {a: {predicate: int}}", `{"predicate":{"a":{"predicate":1}}}`, "a field below one of its name"},
		{"#A: {k: 1 | 2}\n#AB: {k: 1 | 2 | 3}\npredicate: x: " + times(6, same("#A.k"), " & "), `{"predicate":{"x":1}}`, "a name that begins like another's"},
		{"predicate: {a: 1, x: 1} | {a: 2, x: 2}", `{"predicate":{"a":2,"x":2}}`, "one of two"},
		{"findings: [for r in predicate.results for v in r.found if v.level == \"HIGH\" {v}]\nfindings: []\npredicate: results: [...]", `{"predicate":{"results":[{"found":[{"level":"LOW"}]}]}}`, "loops over what loops found"},
	} {
		condition, err := cue.Compile(c.policy, cue.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if held, why, err := condition.Holds(decode(t, c.data)); !held || err != nil {
			t.Errorf("%s: %s %v", c.reason, why, err)
		}
	}
}

// TestExpressions: regular expressions take time in proportion to the text (RE2), and
// those that are too large are none.
func TestExpressions(t *testing.T) {
	for _, expression := range []string{"(a*)*(a*)*(a*)*b", "((a{1000}){1000}){1000}", strings.Repeat("(a{1,1000})", 50), "(a|a)*(a|a)*(a|a)*b"} {
		condition, err := cue.Compile("predicate: x: =~\""+expression+"\"", cue.Options{Time: 30 * time.Second})
		if err != nil {
			continue
		}
		held, _, err := condition.Holds(map[string]any{"predicate": map[string]any{"x": strings.Repeat("a", 20_000)}})
		if held && err == nil && !strings.Contains(expression, "1,1000") {
			t.Errorf("%s: held", expression)
		}
		if err != nil && strings.Contains(err.Error(), "took longer") {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

// TestDataIsBounded: data that would take too long is could-not-ask.
func TestDataIsBounded(t *testing.T) {
	list := func(n int) any {
		all := make([]any, n)
		for i := range all {
			all[i] = 1.0
		}
		return map[string]any{"predicate": map[string]any{"list": all}}
	}
	nested := any(1.0)
	for range 200 {
		nested = []any{nested}
	}
	const cross = "predicate: list: [...]\npairs: len([for a in predicate.list for b in predicate.list {a + b}])"
	const through = "predicate: list: [...]\none: [for a in predicate.list {a}]\nall: len([for b in one {len([for c in one {b + c}])}])"
	for _, c := range []struct {
		policy       string
		data         any
		want, reason string
	}{
		{"predicate: _", list(60_000), "more than 50000 values", "many values"},
		{"predicate: _", map[string]any{"predicate": nested}, "nested deeper", "depth"},
		{cross, list(200), "iterations", "two loops over one list"},
		{cross, list(20), "", "two loops over a short one"},
		{through, list(200), "iterations", "loops by way of a field"},
		{"import \"strings\"\npredicate: text: string\nn: len(strings.Split(predicate.text, \"\"))", map[string]any{"predicate": map[string]any{"text": strings.Repeat("x", 60_000)}}, "taken apart", "a long text"},
		{"predicate: text: string", map[string]any{"predicate": map[string]any{"text": strings.Repeat("x", 60_000)}}, "", "a long text that is left whole"},
		{"import \"strings\"\npredicate: text: string\nn: len(strings.ToUpper(predicate.text))", map[string]any{"predicate": map[string]any{"text": strings.Repeat("x", 60_000)}}, "", "and is so by a function"},
	} {
		condition, err := cue.Compile(c.policy, cue.Options{Time: 20 * time.Second})
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		held, why, err := condition.Holds(c.data)
		if c.want == "" && (!held || err != nil) || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %t %s %v; want %q", c.reason, held, why, err, c.want)
		}
	}
}

// TestNothingOfTheMachine: neither the environment nor files are there.
func TestNothingOfTheMachine(t *testing.T) {
	t.Setenv("SECRET", "value")
	for _, policy := range []string{
		"import \"tool/os\"\npredicate: os.Getenv & {SECRET: string}", "import \"tool/exec\"\npredicate: exec.Run & {cmd: \"id\"}",
		"import \"path\"\npredicate: a: path.Join([\"/etc\"], path.Unix)", "import \"uuid\"\npredicate: a: uuid.Parse",
		"predicate: a: string @tag(SECRET)\npredicate: a: \"value\"", "predicate: a: _ @embed(file=attack_test.go)",
	} {
		condition, err := cue.Compile(policy, cue.Options{})
		if err != nil {
			continue
		}
		if held, _, err := condition.Holds(map[string]any{"predicate": map[string]any{}}); held && err == nil {
			t.Errorf("%q: held", policy)
		}
	}
	if _, ok := os.LookupEnv("SECRET"); !ok {
		t.Fatal("the test has no environment")
	}
}

// TestMisspelt: a field that could only be the data's, and is not, would hold for
// everything.
func TestMisspelt(t *testing.T) {
	for _, c := range []struct {
		policy string
		want   bool
		reason string
	}{
		{"predicates: score: >=7", false, "a member that is not there"},
		{"predicates: score: limit\nlimit: >=7", false, "one that uses another of the policy's own"},
		{"predicate: score: >=7\nverdict: \"high\"", false, "a remark beside the data"},
		{"limit: >=7\npredicate: score: limit", true, "a field that the data is compared with"},
		{"high: predicate.score >= 7\nhigh: true\npredicate: {...}", true, "a field that constrains the data"},
		{"let limit = 7\npredicate: score: >=limit", true, "let"},
		{"P=predicate: {...}\nhigh: P.score >= 7\nhigh: true", true, "a field that constrains the data by another name"},
		{"high?: predicate.score >= 7\npredicate: {...}", false, "one that need not be there, and is not"},
		{"predicate: {more?: int, ...}", true, "one that need not be there, of the data"},
		{"limit: \"^a\"\npredicate: {[=~limit]: int}", true, "a field that names of others are compared with"},
		{"#P: {score: int}\npredicate: {...}", true, "a definition that nothing uses"},
		{"\"#P\": {score: int}\npredicate: {...}", false, "a field in quotes that looks like one"},
		{"#P: {score: int}\n_x: 1\npredicate: #P", true, "definitions and hidden fields"},
		{"[=~\"^pred\"]: score: int", true, "a field with a computed name"},
		{"{predicates: score: >=7}\npredicate: _", true, "embedded structs are not analysed"},
		{"let limits = {score: >=7}\nlimit: limits.score\npredicate: score: limit", true, "a field that another is made of"},
	} {
		if _, err := cue.Compile(c.policy, cue.Options{Members: []string{"predicate", "predicateType"}}); (err == nil) != c.want {
			t.Errorf("%s: %v", c.reason, err)
		}
	}
}
