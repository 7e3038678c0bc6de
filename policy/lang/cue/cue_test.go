package cue_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/cue"
)

func decode(t *testing.T, text string) any {
	t.Helper()
	var data any
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err)
	}
	return data
}

// siblings has a condition on a field next to it: fewer than two scanners is an error.
const siblings = `import "list"
predicate: {
	build: by: list.MaxItems(1)
	if len(predicate.scans.by) < 2 {
		enough: 2
		enough: "no"
	}
}`

func TestHolds(t *testing.T) {
	for _, c := range []struct {
		policy, data string
		want         bool
		why, reason  string
	}{
		{`predicate: score: >=7`, `{"predicate":{"score":8}}`, true, "", "a bound"},
		{`predicate: score: >=7`, `{"predicate":{"score":6}}`, false, "predicate.score", "below the bound"},
		{`predicate: builder: id: =~"^https://ci"`, `{"predicate":{"builder":{"id":"https://ci/1"}}}`, true, "", "an expression"},
		{`predicate: builder: id: =~"^https://ci"`, `{"predicate":{"builder":{}}}`, false, "predicate", "the field is missing, and unification would leave it open"},
		{`predicate: builder: id: "https://ci"`, `{"predicate":{"builder":{}}}`, false, "predicate.builder.id is missing", "the field is missing, and unification would supply it"},
		{`predicate: builder: id: *"https://ci" | string`, `{"predicate":{}}`, false, "predicate.builder is missing", "a default is not part of the statement"},
		{`predicate: extra?: int`, `{"predicate":{}}`, true, "", "an optional field"},
		{`predicate: extra?: int`, `{"predicate":{"extra":"x"}}`, false, "extra", "an optional field of another type"},
		{`predicate: must!: int`, `{"predicate":{}}`, false, "must", "a required field"},
		{"import \"time\"\nbefore: time.Parse(time.RFC3339, \"2049-10-09T17:10:27Z\")\npredicate: at: <before", `{"predicate":{"at":"2030-01-01T00:00:00Z"}}`, true, "", "a time before one of the policy's own"},
		{"import \"time\"\nbefore: time.Parse(time.RFC3339, \"2049-10-09T17:10:27Z\")\npredicate: at: <before", `{"predicate":{"at":"2050-01-01T00:00:00Z"}}`, false, "predicate.at", "a time after it"},
		{siblings, `{"predicate":{"build":{"by":["a"]},"scans":{"by":["b","c"]}}}`, true, "", "a condition on a sibling that does not hold"},
		{siblings, `{"predicate":{"build":{"by":["a"]},"scans":{"by":["b"]}}}`, false, "conflicting", "a condition on a sibling that holds"},
		{siblings, `{"predicate":{"build":{"by":["a"]},"scans":{}}}`, false, "by", "the condition's field is missing"},
		{siblings, `{"predicate":{"build":{"by":["a"]}}}`, false, "scans", "the sibling is missing"},
		{siblings, `{"predicate":{"build":{"by":["a","b"]},"scans":{"by":["b","c"]}}}`, false, "by", "what has no condition does not hold"},
		{"predicate: {n: int, if predicate.n > 2 {tag: \"big\"}}", `{"predicate":{"n":3,"tag":"big"}}`, true, "", "a value by the condition"},
		{"predicate: {n: int, if predicate.n > 2 {tag: \"big\"}}", `{"predicate":{"n":3,"tag":"small"}}`, false, "tag", "another value than by the condition"},
		{"predicate: {n: int, if predicate.n > 2 {tag: \"big\"}}", `{"predicate":{"n":3}}`, false, "predicate.tag is missing", "the value is missing"},
		{"predicate: {n: int, if predicate.n > 2 {tag: \"big\"}}", `{"predicate":{"n":1,"tag":"small"}}`, true, "", "the condition does not hold"},
		{"limit: 3\npredicate: n: <=limit", `{"predicate":{"n":3}}`, true, "", "a field of the policy's own"},
		{"limit: 3\npredicate: n: <=limit", `{"predicate":{"n":4}}`, false, "predicate.n", "beyond it"},
		{"#P: {a: int}\npredicate: #P", `{"predicate":{"a":1}}`, true, "", "a definition"},
		{"#P: {a: int}\npredicate: #P", `{"predicate":{"a":1,"b":2}}`, false, "b", "a definition is closed"},
		{`predicate: list: [...{severity: !="CRITICAL"}]`, `{"predicate":{"list":[{"severity":"LOW"}]}}`, true, "", "every element"},
		{`predicate: list: [...{severity: !="CRITICAL"}]`, `{"predicate":{"list":[{"severity":"LOW"},{"severity":"CRITICAL"}]}}`, false, "predicate.list.1", "one element"},
		{"import \"list\"\nok: true & list.Contains(predicate.by, \"bob\")\npredicate: {...}", `{"predicate":{"by":["bob"]}}`, true, "", "a field of the policy's own over the data"},
		{"import \"list\"\nok: true & list.Contains(predicate.by, \"bob\")\npredicate: {...}", `{"predicate":{"by":["ann"]}}`, false, "ok", "another one there"},
		{"import \"list\"\nok: true & list.Contains(predicate.by, \"bob\")\npredicate: {...}", `{"predicate":{}}`, false, "undefined field: by", "the field that it is over is missing, and CUE would leave it open"},
		{"import \"list\"\n_ok: true & list.Contains(predicate.by, \"bob\")\npredicate: {...}", `{"predicate":{}}`, false, "undefined field: by", "the same in a hidden field"},
		{"metadata: {...}\npredicate: {_ok: true & (metadata.team == \"a\"), ...}", `{"metadata":{"team":"a"},"predicate":{}}`, true, "", "a hidden field of one member over another"},
		{"metadata: {...}\npredicate: {_ok: true & (metadata.team == \"a\"), ...}", `{"metadata":{},"predicate":{}}`, false, "undefined field: team", "over a missing member there"},
		{"metadata: {...}\npredicate: {#ok: true & (metadata.team == \"a\"), ...}", `{"metadata":{},"predicate":{}}`, false, "undefined field: team", "in a definition there"},
		{"metadata: {...}\n\"a-b\": {_ok: true & (metadata.team == \"a\"), ...}", `{"metadata":{"team":"a"},"a-b":{}}`, true, "", "in a member with a name that is no identifier"},
		{"metadata: {...}\n\"a-b\": {_ok: true & (metadata.team == \"a\"), ...}", `{"metadata":{},"a-b":{}}`, false, "undefined field: team", "in a member with such a name"},
		{"metadata: {...}\npredicate: {_in: {ok: true & (metadata.team == \"a\")}, ...}", `{"metadata":{},"predicate":{}}`, false, "undefined field: team", "further in"},
		{"metadata: {...}\npredicate: {_in: [true & (metadata.team == \"a\")], ...}", `{"metadata":{},"predicate":{}}`, false, "undefined field: team", "in a list there"},
		{"metadata: {...}\npredicate: {list: [...{_ok: true & (metadata.team == \"a\"), ...}]}", `{"metadata":{},"predicate":{"list":[{"a":1}]}}`, false, "undefined field: team", "in an element"},
		{"metadata: {...}\npredicate: {list: [...{_ok: true & (metadata.team == \"a\"), ...}]}", `{"metadata":{"team":"a"},"predicate":{"list":[{"a":1}]}}`, true, "", "in an element, and it is so"},
		{"#U: {id: string, _in: 1, uri: \"https://ci/\\(id)\"}\npredicate: builder: #U & {id: \"1\"}", `{"predicate":{"builder":{"id":"1","uri":"https://ci/1"}}}`, true, "", "a template with something hidden in it"},
		{"bad: [for f in predicate.found if f.severity > 7 {f}]\nbad: []\npredicate: {...}", `{"predicate":{"found":[{"severity":3}]}}`, true, "", "a loop over the data"},
		{"bad: [for f in predicate.found if f.severity > 7 {f}]\nbad: []\npredicate: {...}", `{"predicate":{"found":[{"severity":9}]}}`, false, "bad", "that finds one"},
		{"bad: [for f in predicate.found if f.severity > 7 {f}]\nbad: []\npredicate: {...}", `{"predicate":{}}`, false, "undefined field: found", "over a list that is missing"},
		{"bad: [for f in predicate.found if f.severity > 7 {f}]\nbad: []\npredicate: {...}", `{"predicate":{"found":[{}]}}`, false, "undefined field: severity", "over elements that lack it"},
		{"let high = [for f in predicate.found if f.severity > 7 {f}]\nbad: len(high) & 0\npredicate: {...}", `{"predicate":{}}`, false, "undefined field: found", "by way of a let"},
		{"#URI: {id: string, uri: \"https://ci/\\(id)\"}\npredicate: builder: #URI & {id: \"1\"}", `{"predicate":{"builder":{"id":"1","uri":"https://ci/1"}}}`, true, "", "a template of the policy's own, which is open"},
		{"name: =~\"^b\"\npredicate: a: name", `{"predicate":{"a":"b"}}`, true, "", "a type of the policy's own, which is open"},
		{"P=predicate: {...}\n_ok: true & (P.by == \"bob\")", `{"predicate":{"by":"bob"}}`, true, "", "by another name of the member"},
		{"P=predicate: {...}\n_ok: true & (P.by == \"bob\")", `{"predicate":{}}`, false, "undefined field: by", "over a missing member, by that name"},
		{"P=\"predicate\": {...}\n_ok: true & (P.by == \"bob\")", `{"predicate":{}}`, false, "undefined field: by", "of a member in quotes"},
		{"@experiment(aliasv2)\npredicate~P: {...}\n_ok: true & (P.by == \"bob\")", `{"predicate":{"by":"bob"}}`, true, "", "by a name behind the member"},
		{"@experiment(aliasv2)\npredicate~P: {...}\n_ok: true & (P.by == \"bob\")", `{"predicate":{}}`, false, "undefined field: by", "over a missing member, by that one"},
		{"metadata: {...}\npredicate: {X=_ok: true & (metadata.team == \"a\"), no: !X, ...}", `{"metadata":{"team":"a"},"predicate":{"no":false}}`, true, "", "a hidden field with another name"},
		{"metadata: {...}\npredicate: {X=_ok: true & (metadata.team == \"a\"), no?: !X, ...}", `{"metadata":{},"predicate":{}}`, false, "undefined field: team", "over a missing member, there"},
		{"metadata: {...}\npredicate: {_ok: true & (metadata.team == \"a\"), more?: int, ...}", `{"metadata":{},"predicate":{}}`, false, "undefined field: team", "in a hidden field before another one"},
		{"(\"ok\"): true & (predicate.by == \"bob\")\npredicate: {...}", `{"predicate":{"by":"bob"}}`, true, "", "a field with a computed name"},
		{"(\"ok\"): true & (predicate.by == \"bob\")\npredicate: {...}", `{"predicate":{}}`, false, "undefined field: by", "over a missing one, in such a field"},
		{"\"o\\(1)k\": true & (predicate.by == \"bob\")\npredicate: {...}", `{"predicate":{}}`, false, "undefined field: by", "in one with a composed name"},
		{`predicate: builder: null`, `{"predicate":{"builder":null}}`, true, "", "null"},
		{`predicate: builder: null`, `{"predicate":{}}`, false, "predicate.builder is missing", "null is something else than nothing"},
		{`predicate: list: [...{a: 1}]`, `{"predicate":{"list":[{"a":1}]}}`, true, "", "a field of each element"},
		{`predicate: list: [...{a: 1}]`, `{"predicate":{"list":[{"a":1},{}]}}`, false, "predicate.list[1].a is missing", "an element without it"},
		{`predicate: list: [{a: 1}, ...]`, `{"predicate":{"list":[]}}`, false, "predicate.list", "an element is missing"},
	} {
		t.Run(c.reason, func(t *testing.T) {
			condition, err := cue.Compile(c.policy, cue.Options{})
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
	statement := cue.Options{Absent: []string{"_type", "subject"}}
	for _, c := range []struct{ policy, want, reason string }{
		{"", "is empty", "nothing"},
		{"package p\n", "has no constraint", "no field"},
		{"#P: predicate: n: 2", "has no constraint", "a definition that nothing refers to"},
		{"_p: 2\nlet q = 3", "has no constraint", "a hidden field and a name"},
		{"_", "has no constraint", "anything at all"},
		{"{#P: predicate: n: 2\n...}", "has no constraint", "a definition within a struct"},
		{"predicate: {", "expected", "no CUE"},
		{"a: 1\na: 2", "conflicting", "a contradiction"},
		{"predicate: nothing", "nothing", "an unknown name"},
		{"import \"tool/http\"\npredicate: http.Get", "cannot be imported", "the network"},
		{"import \"tool/file\"\npredicate: file.Read", "cannot be imported", "files"},
		{"import \"net\"\npredicate: a: net.IP", "cannot be imported", "the network's package"},
		{"import \"example.com/x\"\npredicate: x.a", "cannot be imported", "another package"},
		{"import \"strings\"\npredicate: a: strings.Repeat(\"x\", 1000000000)", "any amount", "memory by a function"},
		{"predicate: a: 1000000000*\"x\"", "any amount", "memory by a product"},
		{"import \"list\"\npredicate: a: list.Range(0, 1000000000, 1)", "any amount", "a long list"},
		{strings.Repeat(" ", 65<<10), "exceeds the bound", "size"},
		{"subject: [{name: \"x\"}]\npredicate: {}", "not available", "the subject"},
		{"\"_type\": \"x\"\npredicate: {}", "not available", "the type"},
		{"#S: {subject: [...]}\n#S", "not available", "the subject, by a definition"},
		{"[string]: _\npredicate: {}", "computed name", "any member"},
		{"_s: {subject: [...]}\n_s", "not available", "the subject, by a hidden field"},
		{"{subject: [...]}\npredicate: {}", "not available", "the subject, embedded"},
		{"S=subject: [...]\npredicate: of: S", "not available", "the subject, with another name"},
		{"X=_s: {subject: [...]}\nX\npredicate: {}", "not available", "the subject, in a hidden field with another name"},
		{"import \"strings\"\npredicate: a: strings.\"Repeat\"(\"x\", 1000000000)", "any amount", "memory by a function in quotes"},
	} {
		if _, err := cue.Compile(c.policy, statement); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.reason, err, c.want)
		}
	}
	for _, allowed := range []string{"#P: predicate: n: 2\n#P", "{#P: n: 2\npredicate: #P}", "\"#p\": 2", "predicate: subject: \"x\"", "_type: 1\npredicate: {}", "#S: {predicate: [string]: _}\n#S", "\"_s\": subject: 1\npredicate: {}", "\"#s\": subject: 1\npredicate: {}"} {
		if _, err := cue.Compile(allowed, statement); err != nil {
			t.Errorf("%q: %v", allowed, err)
		}
	}
}

// TestAnyMember: where nothing is absent, and any member may be there, each name may be.
func TestAnyMember(t *testing.T) {
	for policy, fits := range map[string]bool{"[string]: int": true, "[string]: string": false, "other: _": true, "subject: 1": true} {
		condition, err := cue.Compile(policy, cue.Options{})
		if err != nil {
			t.Errorf("%s: %v", policy, err)
			continue
		}
		if held, why, err := condition.Holds(map[string]any{"subject": 1.0}); held != fits || err != nil {
			t.Errorf("%s: %t %s %v", policy, held, why, err)
		}
	}
}

func TestHoldsIsBounded(t *testing.T) {
	slow := "predicate: {n: [...[...int]], sums: len([for a in n for b in n for c in b {c}])}"
	condition, err := cue.Compile(slow, cue.Options{Time: 300 * time.Millisecond}) // enough for this on any machine
	if err != nil {
		t.Fatal(err)
	}
	n := make([]any, 100) // short enough to end soon after the test
	for i := range n {
		n[i] = []any{i, i, i, i, i}
	}
	if _, _, err := condition.Holds(map[string]any{"predicate": map[string]any{"n": n}}); err == nil || !strings.Contains(err.Error(), "took longer") {
		t.Errorf("slow: %v", err)
	}
	fast, err := cue.Compile("predicate: _", cue.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := fast.Holds(map[string]any{"predicate": strings.Repeat("x", 5<<20)}); err == nil || !strings.Contains(err.Error(), "exceeds the bound") {
		t.Errorf("large: %v", err)
	}
	if held, _, err := fast.Holds("text"); held || err == nil {
		t.Errorf("data that is no object was judged: %t", held)
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"predicate: score: >=7", "import \"time\"\na: time.Time", "#A: {b?: int}\npredicate: #A", "[=~\"x\"]: 1", "a: [for x in [1] {x}]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		condition, err := cue.Compile(text, cue.Options{Absent: []string{"subject"}, Time: time.Second})
		if err != nil {
			return
		}
		if _, why, _ := condition.Holds(map[string]any{"predicate": map[string]any{"score": 1}}); len(why) > 1000 {
			t.Errorf("%d bytes of words", len(why))
		}
	})
}

func Example() {
	condition, err := cue.Compile(`predicate: builder: id: =~"^https://ci.example/"`, cue.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	holds, _, err := condition.Holds(map[string]any{"predicate": map[string]any{"builder": map[string]any{"id": "https://ci.example/7"}}})
	fmt.Println(holds, err)
	// Output: true <nil>
}
