package rego_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/rego"
)

func decode(t *testing.T, text string) any {
	t.Helper()
	var data any
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestHolds(t *testing.T) {
	const results = "isCompliant[response] {\n  ok := input.predicate.score >= 7\n  msg := \"the score is too low\"\n  response := {\"result\": ok, \"error\": msg}\n}"
	for _, c := range []struct {
		rules, data string
		want        bool
		why, reason string
	}{
		{"isCompliant { input.predicate.score >= 7 }", `{"predicate":{"score":7}}`, true, "", "a rule"},
		{"isCompliant { input.predicate.score >= 7 }", `{"predicate":{"score":6}}`, false, "undefined", "a rule that does not hold"},
		{"isCompliant { input.predicate.score >= 7 }", `{"predicate":{}}`, false, "undefined", "a field is missing"},
		{"default isCompliant = false\nisCompliant { input.predicate.a == 1 }", `{"predicate":{}}`, false, "is false", "a default"},
		{"isCompliant = \"yes\"", `{}`, false, "neither", "a text is no yes"},
		{"isCompliant = 1", `{}`, false, "neither", "a number is no yes"},
		{results, `{"predicate":{"score":9}}`, true, "", "results"},
		{results, `{"predicate":{"score":1}}`, false, "the score is too low", "the policy's own error"},
		{"isCompliant[r] { input.predicate.list[_] == 1; r := {\"result\": true} }", `{"predicate":{"list":[]}}`, false, "no result", "no results"},
		{"isCompliant[r] { r := {\"result\": true} }\nisCompliant[r] { r := {\"result\": input.predicate.score == 7} }", `{"predicate":{}}`, true, "", "a result that is undefined"},
		{"default ok = false\nok { input.predicate.score == 7 }\nisCompliant[r] { r := {\"result\": true} }\nisCompliant[r] { r := {\"result\": ok} }", `{"predicate":{}}`, false, "not true", "a result with a default"},
		{"isCompliant[r] { r := {\"result\": true} }\nisCompliant[r] { r := {\"result\": false} }", `{}`, false, "not true", "one of two results"},
		{"isCompliant[r] { r := {\"result\": false, \"error\": \"\"} }", `{}`, false, "not true", "an error without words"},
		{"isCompliant[r] { r := {\"result\": false, \"error\": 1} }", `{}`, false, "not true", "an error that is no text"},
		{"isCompliant[r] { r := {\"result\": \"true\"} }", `{}`, false, "not true", "a text as result"},
		{"isCompliant[r] { r := {\"result\": true, \"warning\": \"old  base\"} }", `{}`, false, "warning: old base", "a warning, which fails"},
		{"isCompliant[r] { r := {\"result\": true, \"warning\": \"\", \"error\": \"\"} }", `{}`, true, "", "a warning without words"},
		{"isCompliant[r] { r := {\"result\": true, \"warning\": null} }", `{}`, true, "", "no warning"},
		{"isCompliant[r] { r := {\"result\": true, \"warning\": {\"a\": 1}} }", `{}`, false, "whose warning is no text", "a warning that is no text"},
		{"isCompliant[r] { r := {\"result\": true, \"Warning\": \"old\"} }", `{}`, false, "warning: old", "a warning in another case"},
		{"isCompliant[r] { r := {\"result\": true, \"warnings\": \"old\"} }", `{}`, true, "", "another member"},
		{"isCompliant[r] { r := {\"result\": true, \"error\": 1} }", `{}`, false, "whose error is no text", "an error that cannot be read beside true"},
		{"isCompliant[r] { r := {\"result\": true, \"error\": \"ok\"} }", `{}`, true, "", "an error beside true, which is not looked at"},
		{"isCompliant[r] { r := {\"result\": false, \"warning\": \"old\", \"error\": \"bad\"} }", `{}`, false, "bad", "an error and a warning"},
		{"isCompliant[r] { r := {\"result\": true, \"Result\": false} }", `{}`, false, "not true", "two results in one"},
		{"isCompliant[r] { r := {\"result\": true} }\nisCompliant[r] { r := {\"result\": true, \"warning\": \"old\"} }", `{}`, false, "warning: old", "a warning in one of two results"},
		{"isCompliant[r] { input.predicate.old; r := {\"result\": true, \"warning\": \"old\"} }\nisCompliant[r] { r := {\"result\": true} }", `{"predicate":{}}`, true, "", "a warning that does not apply"},
		{"import rego.v1\nisCompliant if input.predicate.score >= 7", `{"predicate":{"score":7}}`, true, "", "the newer syntax"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			condition, err := rego.Compile("package sigstore\n"+c.rules, rego.Options{})
			if err != nil {
				t.Fatal(err)
			}
			held, why, err := condition.Holds(decode(t, c.data))
			if err != nil || held != c.want || !strings.Contains(why, c.why) || held != (why == "") {
				t.Errorf("%t %q %v; want %t %q", held, why, err, c.want, c.why)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	const head = "package sigstore\n"
	for _, c := range []struct{ policy, want, reason string }{
		{"", "empty", "nothing"},
		{"package other\nisCompliant { true }", "want package sigstore", "another package"},
		{head + "allow { true }", "no rule isCompliant", "another rule"},
		{head + "isCompliant { input.predicate.", "rego_parse_error", "no Rego"},
		{head + "isCompliant { http.send({\"method\": \"get\", \"url\": \"https://example.com\"}).status_code == 200 }", "undefined function http.send", "the network"},
		{head + "isCompliant { net.lookup_ip_addr(\"example.com\") }", "undefined function net.lookup_ip_addr", "names"},
		{head + "isCompliant { opa.runtime().env.HOME }", "undefined function opa.runtime", "the machine"},
		{head + "isCompliant { rand.intn(\"x\", 2) == 1 }", "undefined function rand.intn", "chance"},
		{head + "isCompliant { time.now_ns() > 0 }", "undefined function time.now_ns", "a clock that is not given"},
		{head + "isCompliant { input.subject[_].name == \"x\" }", "not available", "the subject"},
		{head + "isCompliant { not input[\"_type\"] }", "not available", "the type"},
		{head + "isCompliant { k := \"subject\"; not input[k] }", "write out the name", "a computed name"},
		{head + "isCompliant { x := input; not x.subject }", "as a whole", "input under another name"},
		{head + "isCompliant { input.predicate.x == 1; x := input; not x.subject }", "as a whole", "input beside a member of it"},
		{head + "isCompliant { input.predicate[input.subject] }", "not available", "the subject within another member"},
		{head + "f(x) { not x.subject }\nisCompliant { f(input) }", "as a whole", "input as an argument"},
		{head + strings.Repeat("#\n", 200<<10), "exceeds the bound", "size"},
	} {
		if _, err := rego.Compile(c.policy, rego.Options{Absent: []string{"_type", "subject"}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.reason, err, c.want)
		}
	}
}

// TestCompileTakes has the twins of what TestCompileRefuses refuses, and the bounds.
func TestCompileTakes(t *testing.T) {
	const rule = "\nisCompliant { true }"
	policy := func(size int) string {
		return "package sigstore\n#" + strings.Repeat("x", size-len("package sigstore\n#"+rule)) + rule
	}
	nested := func(deep int, opening, closing string) string {
		return "package sigstore\nisCompliant { x := " + strings.Repeat(opening, deep) + "1" + strings.Repeat(closing, deep) + "; x == 1 }"
	}
	loops := func(deep int) string {
		return "package sigstore\nisCompliant { " + strings.Repeat("[1 | ", deep) + "true" + strings.Repeat("]", deep) + " }"
	}
	for _, c := range []struct{ reason, taken, refused, want string }{
		{"a member that is available", "package sigstore\nisCompliant { input.predicate.x == 1 }", "package sigstore\nisCompliant { input.subject.x == 1 }", "not available"},
		{"a rule of its own by its whole name", "package sigstore\nbad { input.predicate.x == 1 }\nisCompliant { not data.sigstore.bad }", "package sigstore\nbad { input.predicate.x == 1 }\nisCompliant { not data.sigstore.worse }", "there is no data.sigstore.worse"},
		{"data that is none of the policy's rules", "package sigstore\ndenied = {\"a\"}\nisCompliant { not denied[input.predicate.x] }", "package sigstore\nisCompliant { not data.denied[input.predicate.x] }", "there is no data.denied"},
		{"an imported rule", "package sigstore\nimport data.sigstore.bad as worse\nbad { true }\nisCompliant { not worse }", "package sigstore\nimport data.other\nisCompliant { not other.x }", "there is no data.other"},
		{"data by a computed name", "package sigstore\nbad { true }\nisCompliant { data.sigstore[\"bad\"] }", "package sigstore\nisCompliant { k := \"x\"; not data[k] }", "there is no data[k]"},
		{"a misspelt member", "package sigstore\nisCompliant { not input.predicate }", "package sigstore\nisCompliant { not input.predicates }", "there is no input.predicates"},
		{"the largest", policy(256 << 10), policy(256<<10 + 1), "exceeds the bound"},
		{"brackets", nested(49, "(", ")"), nested(50, "(", ")"), "nested deeper"},
		{"brackets behind a quotation mark in a text", "package sigstore\nisCompliant { input.predicate != \"\\\"" + strings.Repeat("[", 50) + "\" }", nested(50, "[", "]"), "nested deeper"},
		{"brackets in a text", "package sigstore\nisCompliant { input.predicate != \"" + strings.Repeat("[", 60) + "\" }", "package sigstore\nisCompliant { input.predicate != \"x\"; " + strings.Repeat("[", 50), "nested deeper"},
		{"brackets in a raw text", "package sigstore\nisCompliant { input.predicate != `" + strings.Repeat("[", 60) + "` }", "package sigstore\nisCompliant { input.predicate != `x`; " + strings.Repeat("[", 50), "nested deeper"},
		{"brackets in a comment", "package sigstore\n# " + strings.Repeat("[", 60) + rule, "package sigstore\n# x\nisCompliant { " + strings.Repeat("[", 50), "nested deeper"},
		{"brackets behind a text that does not end", "package sigstore" + rule, "package sigstore\nisCompliant { input.predicate != \"\n" + strings.Repeat("[", 50), "nested deeper"},
		{"comprehensions, each looked at once", loops(7), loops(45), "45 comprehensions are nested"},
		{"comprehensions", loops(8), loops(9), "9 comprehensions are nested"},
		{"a text that ends", "package sigstore\nisCompliant { input.predicate == \"x\" }", "package sigstore\nisCompliant { input.predicate == \"x", "rego_parse_error"},
		{"a raw text that ends", "package sigstore\nisCompliant { input.predicate == `x` }", "package sigstore\nisCompliant { input.predicate == `x", "rego_parse_error"},
		{"a comment at the end", "package sigstore\nisCompliant { true } # x", "package sigstore\nisCompliant { true # x", "rego_parse_error"},
	} {
		options := rego.Options{Absent: []string{"subject"}, Members: []string{"predicate"}}
		if _, err := rego.Compile(c.taken, options); err != nil {
			t.Errorf("%s: %v", c.reason, err)
		}
		if _, err := rego.Compile(c.refused, options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.reason, err, c.want)
		}
	}
}

func TestTimeless(t *testing.T) {
	now := func() time.Time { return time.Unix(100, 0) }
	for rules, want := range map[string]bool{
		"isCompliant { input.x == 1 }":                            true,
		"isCompliant { time.now_ns() > 0; input.x == 1 }":         false,
		"isCompliant { input.x == 1 }\nold { time.now_ns() > 0 }": false,
		"isCompliant { time.parse_rfc3339_ns(input.x) > 0 }":      true,
		"isCompliant { x := time.now_ns(); input.x == x }":        false,
		"isCompliant { input.x[time.now_ns()] }":                  false,
	} {
		condition, err := rego.Compile("package sigstore\n"+rules, rego.Options{Now: now})
		if err != nil {
			t.Fatal(err)
		}
		if got := condition.Timeless(); got != want {
			t.Errorf("%s: %t, want %t", rules, got, want)
		}
	}
}

// TestEveryMember: where the members are not known, none but the absent ones is refused.
func TestEveryMember(t *testing.T) {
	for policy, want := range map[string]string{"isCompliant { input.predicate.x == 1 }": "", "isCompliant { input.subject.x == 1 }": "not available"} {
		_, err := rego.Compile("package sigstore\n"+policy, rego.Options{Absent: []string{"subject"}})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", policy, err, want)
		}
	}
}

// TestAnyMember: where neither members nor absent ones are known, nothing is misspelt.
func TestAnyMember(t *testing.T) {
	for _, rule := range []string{"isCompliant { x := input; x.a == 1 }", "isCompliant { k := \"a\"; input[k] == 1 }", "isCompliant { input[_] == 1 }"} {
		for _, options := range []rego.Options{{}, {Members: []string{"a"}}, {Absent: []string{"b"}}} {
			known := len(options.Members)+len(options.Absent) > 0
			condition, err := rego.Compile("package sigstore\n"+rule, options)
			if known != (err != nil) || err != nil && !strings.Contains(err.Error(), "may refer to") {
				t.Errorf("%s: known %t, %v", rule, known, err)
			}
			if err != nil {
				continue
			}
			if held, _, err := condition.Holds(map[string]any{"a": 1}); !held || err != nil {
				t.Errorf("%s: held %t, %v", rule, held, err)
			}
		}
	}
}

// TestFailure: what goes wrong in time is not called slow.
func TestFailure(t *testing.T) {
	condition, err := rego.Compile("package sigstore\nisCompliant { to_number(input.x) == 1 }", rego.Options{Time: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if held, _, err := condition.Holds(map[string]any{"x": "1"}); !held || err != nil {
		t.Errorf("a number: held %t, %v", held, err)
	}
	if held, _, err := condition.Holds(map[string]any{"x": "y"}); held || err == nil || !strings.Contains(err.Error(), "to_number") {
		t.Errorf("no number: held %t, %v", held, err)
	}
}

// TestDefect: a panic in an evaluation is an error with its value, and
// frees its seat.
func TestDefect(t *testing.T) {
	broken := true
	condition, err := rego.Compile("package sigstore\nisCompliant { time.now_ns() > 0 }", rego.Options{Time: time.Minute, Now: func() time.Time {
		if broken {
			panic("the clock stands still")
		}
		return time.Unix(100, 0)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if held, _, err := condition.Holds(map[string]any{}); held || err == nil || !strings.Contains(err.Error(), "the clock stands still") {
			t.Fatalf("held %t, %v", held, err)
		}
	}
	broken = false
	if held, _, err := condition.Holds(map[string]any{}); !held || err != nil {
		t.Errorf("held %t, %v", held, err)
	}
}

func TestWhyIsShort(t *testing.T) {
	for size, want := range map[int]int{500: 500, 501: 503} {
		condition, err := rego.Compile("package sigstore\nisCompliant[r] { r := {\"result\": false, \"error\": \""+strings.Repeat("x", size)+"\"} }", rego.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if held, why, err := condition.Holds(map[string]any{}); held || len(why) != want || err != nil {
			t.Errorf("%d bytes of %d, %v", len(why), size, err)
		}
	}
}

func TestClock(t *testing.T) {
	at := time.Unix(100, 0)
	clocked, err := rego.Compile("package sigstore\nisCompliant { time.now_ns() < 200000000000 }", rego.Options{Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	if clocked.Timeless() {
		t.Error("a policy that reads the clock is called timeless")
	}
	for _, c := range []struct {
		seconds int64
		want    bool
	}{{100, true}, {300, false}} {
		at = time.Unix(c.seconds, 0)
		if held, why, err := clocked.Holds(map[string]any{}); held != c.want || err != nil {
			t.Errorf("at %d: %t %s %v", c.seconds, held, why, err)
		}
	}
}

func TestHoldsIsBounded(t *testing.T) {
	slow := "package sigstore\nisCompliant { count([1 | n := numbers.range(1, 3000); n[_]; n[_]; n[_]]) == 0 }"
	condition, err := rego.Compile(slow, rego.Options{Time: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := condition.Holds(map[string]any{}); err == nil || !strings.Contains(err.Error(), "took longer") {
		t.Errorf("slow: %v", err)
	}
	if _, _, err := condition.Holds(map[string]any{"predicate": strings.Repeat("x", 17<<20)}); err == nil || !strings.Contains(err.Error(), "exceeds the bound") {
		t.Errorf("large: %v", err)
	}
}

func TestData(t *testing.T) {
	condition, err := rego.Compile("package sigstore\nisCompliant { true }", rego.Options{Time: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason, want string
		data         any
	}{
		{"the most", "", strings.Repeat("x", 16<<20-2)},
		{"a byte more", "exceeds the bound", strings.Repeat("x", 16<<20-1)},
		{"what JSON has no word for", "unsupported type", make(chan int)},
		{"a large number", "", json.RawMessage("1e308")},
		{"a number beyond all", "is no number", json.RawMessage("1e309")},
	} {
		held, _, err := condition.Holds(c.data)
		if held != (c.want == "") || (err == nil) != held || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: held %t, %v", c.reason, held, err)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"isCompliant { true }", "isCompliant[x] { x := {\"result\": true} }", "isCompliant { input.predicate.a[_] == 1 }"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		condition, err := rego.Compile("package sigstore\n"+text, rego.Options{Absent: []string{"subject"}, Time: time.Second})
		if err != nil {
			return
		}
		if _, why, _ := condition.Holds(map[string]any{"predicate": 1}); len(why) > 1000 {
			t.Errorf("%d bytes of words", len(why))
		}
	})
}

func Example() {
	condition, err := rego.Compile("package sigstore\nisCompliant { input.predicate.score >= 7 }", rego.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	holds, why, err := condition.Holds(map[string]any{"predicate": map[string]any{"score": 6}})
	fmt.Println(holds, why, err)
	// Output: false isCompliant is undefined <nil>
}
