package rego_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/rego"
)

// chain is a module of rules each of which makes more of the one before.
func chain(n int, first, next string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "x0 := %s\n", first)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "x%d := %s\n", i, strings.ReplaceAll(next, "$", fmt.Sprintf("x%d", i-1)))
	}
	fmt.Fprintf(&b, "isCompliant { count(sprintf(\"%%v\", [x%d])) > 0 }", n-1)
	return b.String()
}

// TestAttacks: whatever a policy does, the answer is there in time, and what reaches
// out or cannot be interrupted is no function.
func TestAttacks(t *testing.T) {
	const limit = 200 * time.Millisecond
	for _, c := range []struct{ policy, reason string }{
		{chain(22, `"aaaaaaaaaa"`, `concat("", [$, $])`), "a text that doubles"},
		{chain(20, `[1, 2, 3, 4]`, `array.concat($, $)`), "a list that doubles"},
		{chain(21, `99999999`, `$ * $`), "a number that is squared"},
		{"isCompliant { count(numbers.range(1, 1000000000)) > 0 }", "a long list"},
		{"isCompliant { n := numbers.range(1, 10); count([1 | n[_]; n[_]; n[_]; n[_]; n[_]; n[_]; n[_]; n[_]; n[_]]) > 0 }", "a product of lists"},
		{"isCompliant { count(sprintf(\"%0999999999d\", [1])) > 0 }", "a wide number"},
		{"isCompliant { glob.match(\"" + strings.Repeat("*a", 40) + "b\", [], \"" + strings.Repeat("a", 1000) + "\") }", "a glob that backtracks"},
		{"isCompliant { regex.match(\"(a*)*(a*)*(a*)*b\", \"" + strings.Repeat("a", 10000) + "\") }", "an expression that would backtrack"},
		{"isCompliant { regex.match(\"((a{1000}){1000}){1000}\", \"a\") }", "an expression of expressions"},
		{"isCompliant { " + strings.Repeat("[1 | ", 8) + "true" + strings.Repeat("]", 8) + " }", "comprehensions in one another"},
		{"isCompliant { walk(input, [p, v]); walk(input, [q, w]); walk(input, [r, x]); p == q; q == r; v == 1; w == 2; x == 3 }", "every part of the input with every other"},
	} {
		began := time.Now()
		condition, err := rego.Compile("package sigstore\n"+c.policy, rego.Options{Time: limit})
		if err == nil {
			_, _, err = condition.Holds(map[string]any{"predicate": strings.Split(strings.Repeat("x", 300), "")})
		}
		if took := time.Since(began); took > limit+20*time.Second {
			t.Errorf("%s: %s, %v", c.reason, took, err)
		}
	}
	for _, c := range []struct{ policy, want, reason string }{
		{"f(x) = f(x - 1) { x > 0 }\nisCompliant { f(10) == 1 }", "recursive", "recursion"},
		{"isCompliant { bits.lsh(1, 100000000000) > 0 }", "undefined function", "a number of any size"},
		{"isCompliant { graph.reachable_paths({}, {}) }", "undefined function", "all ways through a graph"},
		{"isCompliant { regex.globs_match(\"a\", \"b\") }", "undefined function", "expressions against expressions"},
		{"isCompliant { strings.render_template(\"{{.x}}\", {}) == \"\" }", "undefined function", "templates, which loop"},
		{"isCompliant { json.match_schema({}, {}) }", "undefined function", "schemas, which refer to others"},
		{"isCompliant { trace(\"x\") }", "undefined function", "a trace"},
		{"isCompliant { yaml.unmarshal(\"a\") }", "undefined function", "YAML, with aliases that multiply"},
		{"isCompliant { " + strings.Repeat("[1 | ", 2000) + "true" + strings.Repeat("]", 2000) + " }", "nested deeper", "comprehensions without end"},
		{"isCompliant { " + strings.Repeat("[1 | ", 20) + "true" + strings.Repeat("]", 20) + " }", "20 comprehensions are nested", "many comprehensions"},
		{"isCompliant { x := " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + "; x }", "nested deeper", "parentheses without end"},
		{"isCompliant { opa.runtime().env.SECRET }", "undefined function", "the environment"},
		{"isCompliant { net.cidr_contains(\"10.0.0.0/8\", \"10.0.0.1\") }", "undefined function", "addresses"},
		{"isCompliant { io.jwt.decode_verify(\"\", {}) }", "undefined function", "tokens"},
		{"isCompliant { rego.metadata.rule() }", "undefined function", "annotations"},
		{"isCompliant { rego.parse_module(\"\", \"\") }", "undefined function", "modules"},
		{"isCompliant { providers.aws.sign_req({}, {}, 0) }", "undefined function", "credentials"},
		{"isCompliant { uuid.rfc4122(\"x\") != \"\" }", "undefined function", "chance"},
		{"import data.other\nisCompliant { other.x }", "there is no data.other", "documents of others"},
	} {
		condition, err := rego.Compile("package sigstore\n"+c.policy, rego.Options{})
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %q", c.reason, err, c.want)
		}
		if c.want == "" && err == nil {
			if held, _, err := condition.Holds(map[string]any{}); held || err != nil {
				t.Errorf("%s: held %t, %v", c.reason, held, err)
			}
		}
	}
	quoted := "package sigstore\n# " + strings.Repeat("{", 50) + "\nisCompliant { input.x != \"" + strings.Repeat("[", 50) + "\\\"(\"; input.x != `" + strings.Repeat("(", 50) + "` }"
	if _, err := rego.Compile(quoted, rego.Options{}); err != nil {
		t.Errorf("brackets in texts and comments: %v", err)
	}
}

// TestMemoryIsBounded: what takes all memory in its time is interrupted before.
func TestMemoryIsBounded(t *testing.T) {
	large := strings.Replace(chain(12, "\""+strings.Repeat("x", 1000)+"\"", `concat("", [$, $])`), "isCompliant", "unused", 1)
	condition, err := rego.Compile("package sigstore\n"+large+"\nisCompliant { count([t | n := numbers.range(1, 100000)[_]; t := concat(\"\", [x11, format_int(n, 10)])]) > 0 }", rego.Options{Time: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := condition.Holds(map[string]any{}); err == nil || !strings.Contains(err.Error(), "memory had grown") {
		t.Errorf("%v", err)
	}
}

// TestMemoryOfOthers: memory that the process used before does not count for an evaluation.
func TestMemoryOfOthers(t *testing.T) {
	others := make([]byte, 400<<20)
	condition, err := rego.Compile("package sigstore\nisCompliant { n := numbers.range(1, 600); count([1 | n[_]; n[_]]) == 360000 }", rego.Options{Time: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if held, _, err := condition.Holds(map[string]any{}); !held || err != nil {
		t.Errorf("held %t, %v", held, err)
	}
	runtime.KeepAlive(others)
}

// TestNested: how deep a policy is nested is counted once, and not again at each level.
func TestNested(t *testing.T) {
	for _, c := range []struct{ reason, opening, inside, closing string }{
		{"lists", "[1 | ", "true", "]"}, {"sets", "{1 | ", "true", "}"}, {"objects", "{1: 1 | ", "true", "}"}, {"every", "every x in [1] { x == 1; ", "true", " }"},
	} {
		for depth, want := range map[int]string{7: "", 40: "40 comprehensions are nested"} {
			_, err := rego.Compile("package sigstore\nimport future.keywords.every\nisCompliant { "+strings.Repeat(c.opening, depth)+c.inside+strings.Repeat(c.closing, depth)+" }", rego.Options{Time: time.Minute})
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %d deep: %v; want %q", c.reason, depth, err, want)
			}
		}
	}
}

// TestMisspelt: a missing member makes "not" hold for everything.
func TestMisspelt(t *testing.T) {
	for policy, want := range map[string]string{
		"isCompliant { not input.predicates.bad }":                                      "there is no input.predicates",
		"isCompliant { not input[\"predicates\"].bad }":                                 "there is no input",
		"isCompliant { not input.predicate.bad }":                                       "",
		"isCompliant { x := input; not x.bad }":                                         "input as a whole may refer to a member that is not there: name its members",
		"isCompliant { x := input.predicate; not x.bad }":                               "",
		"isCompliant { strings.reverse(input.predicate.a) == \"b\" }":                   "",
		"isCompliant { k := \"predicate\"; not input[k].bad }":                          "input[k].bad may refer to a member that is not there: write out the name",
		"isCompliant { k := \"a\"; not input.predicate[k].bad }":                        "",
		"isCompliant { not object.get(input, \"predicates\", false) }":                  "as a whole",
		"isCompliant { not object.get(input.predicate, \"a\", false) }":                 "",
		"ok { not input.predicate.bad }\nisCompliant { ok with input as {} }":           "as a whole",
		"ok { not input.predicate.bad }\nisCompliant { ok with input.predicate as {} }": "",
		"isCompliant { input[_].bad }":                                                  "write out the name",
		"isCompliant { input.predicate[_].bad }":                                        "",
	} {
		_, err := rego.Compile("package sigstore\n"+policy, rego.Options{Members: []string{"predicate", "predicateType"}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", policy, err, want)
		}
	}
}
