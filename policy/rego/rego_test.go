package rego_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/rego"
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
		{"isCompliant[r] { r := {\"result\": true} }\nisCompliant[r] { r := {\"result\": false} }", `{}`, false, "not true", "one of two results"},
		{"isCompliant[r] { r := {\"result\": \"true\"} }", `{}`, false, "not true", "a text as result"},
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
		{head + "isCompliant { time.now_ns() > 0 }", "undefined function time.now_ns", "a clock that nobody gives"},
		{head + "isCompliant { input.subject[_].name == \"x\" }", "not handed on", "the subject"},
		{head + "isCompliant { not input[\"_type\"] }", "not handed on", "the type"},
		{head + "isCompliant { k := \"subject\"; not input[k] }", "write out the name", "a computed name"},
		{head + "isCompliant { x := input; not x.subject }", "as a whole", "input under another name"},
		{head + "f(x) { not x.subject }\nisCompliant { f(input) }", "as a whole", "input as an argument"},
		{head + strings.Repeat("#\n", 200<<10), "exceeds the bound", "size"},
	} {
		if _, err := rego.Compile(c.policy, rego.Options{Absent: []string{"_type", "subject"}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.reason, err, c.want)
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
