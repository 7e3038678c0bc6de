package condition_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

func newEngine(tb testing.TB) *jmespath.Engine {
	tb.Helper()
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

func parse(tb testing.TB, text string) any {
	tb.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return value
}

func text(tb testing.TB, value any) string {
	tb.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// TestOperators reads each row as [key, operator, value]; held and unsure are
// the results that Kyverno's documentation gives.
func TestOperators(t *testing.T) {
	const held, not, unsure, doubt = "held", "not", "unsure", "doubt"
	tests := []struct{ row, want, reason string }{
		{`["a", "Equals", "a"]`, held, "text"},
		{`["a", "Equal", "b"]`, not, "text"},
		{`["abc", "Equals", "a*"]`, held, "the value is a pattern"},
		{`["a*", "Equals", "abc"]`, not, "the key is none"},
		{`[1, "Equals", 1.0]`, held, "numbers"},
		{`[1, "Equals", "1"]`, held, "a number as text"},
		{`[true, "Equals", true]`, held, "booleans"},
		{`[true, "Equals", "true"]`, doubt, "a boolean is no text, and may be written as one"},
		{`["1h", "Equals", "60m"]`, held, "durations"},
		{`["1h", "Equals", 3600]`, held, "seconds"},
		{`[3600, "Equals", "1h"]`, doubt, "seconds, which Kyverno takes for a number only beside a key that is a duration"},
		{`["10", "Equals", 10]`, doubt, "a text that reads as the number"},
		{`["11", "Equals", 10]`, not, "a text that reads as another one"},
		{`["10", "NotEquals", 10]`, doubt, "it does not differ for certain either"},
		{`["11", "NotEquals", 10]`, held, "another number in another kind"},
		{`["1Ki", "NotEquals", 1024]`, doubt, "a quantity of as much"},
		{`[1024, "Equals", "1Ki"]`, doubt, "the same as the value"},
		{`[10, "NotEquals", "10"]`, not, "a number and the text of it, as in Kyverno"},
		{`["0", "Equals", 0]`, doubt, "0 alone is no duration"},
		{`["0s", "Equals", 0]`, held, "this is one"},
		{`["10", "Equals", "1*"]`, held, "a quantity matches wildcards"},
		{`["20", "NotEquals", "1*"]`, held, "or does not"},
		{`[["a"], "NotIn", ["a*"]]`, not, "wildcards of the value count in a list"},
		{`[["b"], "NotIn", ["a*"]]`, held, "and match no other item"},
		{`["a", "AllNotIn", "10"]`, held, "a scalar value is a list of one"},
		{`["10", "AllNotIn", "10"]`, not, "which holds this one"},
		{`["10Mi", "GreaterThan", 10]`, held, "a quantity and a number"},
		{`[10, "GreaterThan", "10Mi"]`, not, "the other way round"},
		{`[0.1, "DurationLessThan", "0s"]`, not, "a part of a second counts"},
		{`["0s", "DurationLessThan", 0.1]`, held, "a part of a second counts"},
		{`["1Gi", "Equals", "1024Mi"]`, held, "quantities"},
		{`["1Gi", "Equals", "1025Mi"]`, not, "quantities"},
		{`[[1, 2], "Equals", [1, 2]]`, held, "lists"},
		{`[[1, 2], "Equals", [2, 1]]`, not, "in order"},
		{`[{"a": 1}, "Equals", {"a": 1}]`, held, "objects"},
		{`[null, "Equals", null]`, held, "null is null"},
		{`[null, "Equals", "a"]`, not, "and nothing else"},
		{`["a", "NotEquals", "b"]`, held, "text"},
		{`["abc", "NotEquals", "a*"]`, not, "the value is a pattern"},
		{`["1Gi", "NotEqual", "1024Mi"]`, not, "quantities"},
		{`[null, "NotEquals", "a"]`, doubt, "nothing is known that could differ"},
		{`[null, "NotEquals", null]`, not, "null is null"},
		{`["a", "NotEquals", null]`, held, "a text is not null"},

		{`["a", "In", ["a", "b"]]`, held, "one key"},
		{`[["a", "c"], "In", ["a", "b"]]`, not, "all keys"},
		{`[["a", "c"], "NotIn", ["a", "b"]]`, held, "not all of them"},
		{`[["a", "b"], "NotIn", ["a", "b"]]`, not, "all of them"},
		{`["a", "AnyIn", ["a", "b"]]`, held, "one key"},
		{`["c", "AnyIn", ["a", "b"]]`, not, "one key"},
		{`[["a", "c"], "AnyIn", ["a", "b"]]`, held, "one of them"},
		{`[["c", "d"], "AnyIn", ["a", "b"]]`, not, "none of them"},
		{`[[], "AnyIn", ["a"]]`, not, "there is none"},
		{`[["a", "b"], "AllIn", ["a", "b", "c"]]`, held, "all of them"},
		{`[["a", "d"], "AllIn", ["a", "b", "c"]]`, not, "not all"},
		{`[["a", "d"], "AnyNotIn", ["a", "b"]]`, held, "d is not"},
		{`[["a", "b"], "AnyNotIn", ["a", "b"]]`, not, "each is"},
		{`[["c", "d"], "AllNotIn", ["a", "b"]]`, held, "none is"},
		{`[["a", "d"], "AllNotIn", ["a", "b"]]`, not, "a is"},
		{`[[], "AllNotIn", ["a"]]`, held, "none is there, so none is in"},
		{`["ghcr.io/a", "AnyIn", ["ghcr.io/*"]]`, held, "an item is a pattern"},
		{`["ghcr.*", "AnyIn", ["ghcr.io/a"]]`, held, "a key that the policy spells out is one"},
		{`["a", "AnyIn", "a*"]`, held, "a pattern alone"},
		{`["b", "AnyIn", "[\"a\", \"b\"]"]`, held, "a list as JSON"},
		{`[8, "AnyIn", [7, 8]]`, held, "numbers"},
		{`["8", "AnyIn", [7, 8]]`, held, "as text"},
		{`[1000000, "AnyIn", ["1000000"]]`, held, "not as 1e+06"},
		{`[true, "AnyIn", [true]]`, held, "booleans"},
		{`[5, "AnyIn", "1-10"]`, held, "a range"},
		{`[10, "AnyIn", "1-10"]`, held, "with its ends"},
		{`[11, "AnyIn", "1-10"]`, not, "outside"},
		{`[11, "AnyNotIn", "1-10"]`, held, "outside"},
		{`[[1, 11], "AllIn", "1-10"]`, not, "one is outside"},
		{`[[1, 11], "AnyIn", "1-10"]`, held, "one is inside"},
		{`["1.5Gi", "AnyIn", "1Gi-2Gi"]`, held, "a range of quantities"},
		{`["90m", "AnyIn", "1h-2h"]`, held, "a range of durations"},
		{`[5, "AnyIn", "1!-10"]`, not, "a range that is left out"},
		{`["-3", "AnyIn", "-5-0"]`, held, "negative numbers"},
		{`["a", "AnyIn", "1-10"]`, doubt, "text has no place in a range"},
		{`["a", "AnyNotIn", "1-10"]`, doubt, "nor outside of it"},
		{`["a", "AnyIn", "1!-10"]`, not, "no range, as in Kyverno"},
		{`["a", "AllNotIn", "1-10"]`, doubt, "nor outside of it"},
		{`["a", "AllIn", "1-10"]`, doubt, "nor in it"},
		{`[[5, "a"], "AnyIn", "1-10"]`, held, "5 settles it"},
		{`[[5, "a"], "AllNotIn", "1-10"]`, not, "5 settles it"},
		{`[[11, "a"], "AnyNotIn", "1-10"]`, held, "11 settles it"},
		{`[[11, "a"], "AllNotIn", "1-10"]`, doubt, "11 does not"},
		{`[null, "AnyNotIn", ["a"]]`, doubt, "null is no key"},
		{`["a", "AnyNotIn", null]`, doubt, "null is no set"},
		{`[{"a": 1}, "AllNotIn", ["a"]]`, doubt, "an object is no key"},

		{`[2, "GreaterThan", 1]`, held, "numbers"},
		{`[1, "GreaterThan", 1]`, not, "not more"},
		{`[1, "GreaterThanOrEquals", 1]`, held, "as much"},
		{`["10", "GreaterThan", 9]`, held, "numbers as text are numbers"},
		{`["2.5", "GreaterThan", "2"]`, held, "fractions"},
		{`["1Gi", "GreaterThan", "1023Mi"]`, held, "quantities"},
		{`["200Mi", "LessThan", "1Gi"]`, held, "quantities"},
		{`["2h", "GreaterThan", "119m"]`, held, "durations"},
		{`["28h0m33.8257394s", "LessThanOrEquals", "168h"]`, held, "what time_since returns"},
		{`["1h", "LessThanOrEquals", 3600]`, held, "seconds"},
		{`["1.10.0", "GreaterThan", "1.9.0"]`, held, "versions"},
		{`["1.10.0-rc.1", "LessThan", "1.10.0"]`, held, "before the release"},
		{`["a", "GreaterThan", "b"]`, doubt, "words have no order"},
		{`[[1], "GreaterThan", 0]`, doubt, "nor have lists"},
		{`[null, "LessThan", 1]`, unsure, "nor has null"},

		{`["2h", "DurationGreaterThan", "1h"]`, held, "durations"},
		{`["1h", "DurationGreaterThanOrEquals", 3600]`, held, "seconds"},
		{`[10, "DurationLessThan", "1m"]`, held, "seconds"},
		{`[60, "DurationLessThanOrEquals", "1m"]`, held, "seconds"},
		{`["1Gi", "DurationLessThan", "1m"]`, doubt, "no duration"},
	}
	tested := map[string]bool{}
	for _, test := range tests {
		row := parse(t, test.row).([]any)
		tested[row[1].(string)] = true
		result, err := judged(t, text(t, row[0]), row[1].(string), text(t, row[2]), nil)
		got := answer(result)
		if err != nil || got != test.want || got == unsure && result.Held {
			t.Errorf("%s: %s, %v; want %s: %s", test.row, got, err, test.want, test.reason)
		}
	}
	for _, name := range condition.Operators() {
		if !tested[name] {
			t.Errorf("%s is not tested", name)
		}
	}
}

func TestBlocks(t *testing.T) {
	yes, no := `{"key": "{{a}}", "operator": "Equals", "value": 1}`, `{"key": "{{a}}", "operator": "Equals", "value": 2}`
	fails := `{"key": "{{missing}}", "operator": "Equals", "value": 2}`
	tests := []struct {
		conditions string
		want       bool
		evaluated  int
		reason     string
	}{
		{`null`, true, 0, "nothing to hold"},
		{`{}`, true, 0, "nothing to hold"},
		{`{"any": []}`, false, 0, "none of none"},
		{`{"all": []}`, true, 0, "all of none"},
		{`{"any": [` + no + `,` + yes + `,` + fails + `]}`, true, 2, "any stops at the first that holds"},
		{`{"any": [` + no + `,` + no + `]}`, false, 2, "none holds"},
		{`{"all": [` + yes + `,` + no + `,` + fails + `]}`, false, 2, "all stops at the first that does not"},
		{`{"any": [` + yes + `], "all": [` + no + `]}`, false, 2, "both must hold"},
		{`{"any": [` + no + `], "all": [` + fails + `]}`, false, 1, "any comes first"},
		{`{"any": [` + yes + `], "all": [` + yes + `]}`, true, 2, "both do"},
		{`[` + yes + `,` + yes + `]`, true, 2, "the old list means all"},
		{`[` + yes + `,` + no + `]`, false, 2, "the old list means all"},
		{`[{"all": [` + yes + `]}, {"any": [` + no + `]}]`, false, 2, "each block must hold"},
		{`[{"all": [` + yes + `]}, {"any": [` + yes + `]}]`, true, 2, "each does"},
	}
	for _, test := range tests {
		conditions, err := condition.Compile(newEngine(t), parse(t, test.conditions))
		if err != nil {
			t.Errorf("%s: %v", test.conditions, err)
			continue
		}
		result, err := conditions.Evaluate(variable.Context{"a": 1.0})
		if err != nil || result.Held != test.want || len(result.Outcomes) != test.evaluated {
			t.Errorf("%s: %+v, %v; want %v after %d: %s", test.conditions, result, err, test.want, test.evaluated, test.reason)
		}
		if conditions.Empty() != (test.evaluated == 0 && test.want) {
			t.Errorf("%s: Empty() = %v", test.conditions, conditions.Empty())
		}
	}
}

func TestOutcome(t *testing.T) {
	conditions, err := condition.Compile(newEngine(t), parse(t, `{"all": [
		{"key": "x", "operator": "Equals", "value": "x"},
		{"key": "{{ builder.id }}", "operator": "Equals", "value": "https://ci.example/*", "message": "built by {{ builder.id }}"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	result, err := conditions.Evaluate(variable.Context{"builder": map[string]any{"id": "laptop"}})
	if err != nil || result.Held || len(result.Decisive()) != 1 {
		t.Fatalf("got %+v, %v", result, err)
	}
	decisive := result.Decisive()[0]
	if decisive.Path != "/all/1" || decisive.Key != "laptop" || decisive.Value != "https://ci.example/*" {
		t.Errorf("got %+v", decisive)
	}
	if want := `expected {{ builder.id }} Equals "https://ci.example/*", found "laptop": built by laptop`; decisive.String() != want {
		t.Errorf("got %s\nwant %s", decisive, want)
	}
	result, err = conditions.Evaluate(variable.Context{"builder": map[string]any{"id": "https://ci.example/1"}})
	if err != nil || !result.Held || len(result.Decisive()) != 2 {
		t.Errorf("got %+v, %v", result, err)
	}
}

// A wildcard that arrives with the data is a character.
func TestDataIsNoPattern(t *testing.T) {
	conditions, err := condition.Compile(newEngine(t), parse(t, `[{"key": "{{ name }}", "operator": "AnyIn", "value": ["trusted"]}]`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"trusted": true, "*": false, "trust??": false} {
		result, err := conditions.Evaluate(variable.Context{"name": name})
		if err != nil || result.Held != want {
			t.Errorf("%q: %v, %v", name, result.Held, err)
		}
	}
}

// A wildcard that arrives in a value is in doubt where it would matter, whichever
// way it would matter; those that the policy spells out beside it are wildcards.
func TestValueFromData(t *testing.T) {
	const held, not, doubt = "held", "not", "doubt"
	tests := []struct{ operator, value, data, want, reason string }{
		{"Equals", `"{{ want }}"`, "abc", held, "to the letter"},
		{"Equals", `"{{ want }}"`, "abd", not, "another text"},
		{"Equals", `"{{ want }}"`, "*", doubt, "a star from the data"},
		{"Equals", `"{{ want }}"`, "ab?", doubt, "a question mark from the data"},
		{"Equals", `"{{ want }}"`, "x*", not, "no reading of it matches"},
		{"Equals", `"*"`, "x", held, "the policy's own star"},
		{"Equals", `"a*{{ want }}"`, "c", held, "the policy's own star beside data"},
		{"Equals", `"a*{{ want }}"`, "*", doubt, "and one from the data"},
		{"Equals", `"{{ want || '*' }}c"`, "ab", held, "a star inside an expression is no pattern"},
		{"Equals", `"{{ {a: want}.a }}*"`, "ab", held, "single braces do not end a variable"},
		{"Equals", `"{{ {a: '}}**'}.a && want }}*"`, "*", doubt, "nor what looks like an end, to a star of ours"},
		{"NotEquals", `"{{ want }}"`, "abd", held, "another text"},
		{"NotEquals", `"{{ want }}"`, "abc", not, "the same"},
		{"NotEquals", `"{{ want }}"`, "*", doubt, "a star from the data"},
		{"AnyIn", `"{{ want }}"`, "abc", held, "to the letter"},
		{"AnyIn", `"{{ want }}"`, "*", doubt, "a star from the data"},
		{"AnyIn", `["{{ want }}"]`, "abc", held, "to the letter"},
		{"AnyIn", `["{{ want }}"]`, "*", doubt, "a star from the data"},
		{"AnyIn", `["{{ want }}", "abc"]`, "*", held, "another item settles it"},
		{"AnyIn", `["{{ want }}", "a*"]`, "*", held, "another item's own star settles it"},
		{"AnyIn", `["x*", "{{ want }}"]`, "*", doubt, "each item has its own"},
		{"AnyIn", `"{{ list }}"`, "a*", doubt, "a list from the data"},
		{"AnyIn", `"{{ list }}"`, "abc", held, "to the letter"},
		{"AnyIn", `"[\"x*\", \"{{ want }}\"]"`, "*", doubt, "a list as JSON, in part from the data"},
		{"AnyIn", `"[\"a*\", \"{{ want }}\"]"`, "x", held, "a list as JSON, with a star of the policy"},
		{"AnyNotIn", `["{{ want }}"]`, "x", held, "another text"},
		{"AnyNotIn", `["{{ want }}"]`, "*", doubt, "a star from the data"},
		{"AllNotIn", `["{{ want }}"]`, "*", doubt, "a star from the data"},
	}
	for _, test := range tests {
		conditions, err := condition.Compile(newEngine(t), parse(t, `[{"key": "{{ found }}", "operator": "`+test.operator+`", "value": `+test.value+`}]`))
		if err != nil {
			t.Errorf("%s: %v", test.value, err)
			continue
		}
		result, err := conditions.Evaluate(variable.Context{"found": "abc", "want": test.data, "list": []any{test.data}})
		got := not
		switch {
		case result.Held:
			got = held
		case result.Indeterminate && result.Cause() != nil:
			got = doubt
		}
		if err != nil || got != test.want {
			t.Errorf("abc %s %s with %q: %s, %v; want %s: %s", test.operator, test.value, test.data, got, err, test.want, test.reason)
		}
	}
}

func TestEvaluateErrors(t *testing.T) {
	conditions, err := condition.Compile(newEngine(t), parse(t, `{"any": [{"key": "{{ a.b }}", "operator": "Equals", "value": 1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = conditions.Evaluate(variable.Context{"a": map[string]any{}})
	failed := (*variable.Error)(nil)
	if !errors.As(err, &failed) || failed.Path != "/any/0/key" || failed.Variable != "a.b" {
		t.Errorf("got %v", err)
	}
}

func TestCompileErrors(t *testing.T) {
	tests := []struct{ conditions, want, reason string }{
		{`"x"`, "want a block", "no conditions"},
		{`{"any": {}}`, "/any: want a list", "no list"},
		{`{"some": []}`, "/some: unknown field", "no such block"},
		{`{"any": [1]}`, "/any/0: want a condition", "no condition"},
		{`[1]`, "/0: want a condition", "no condition"},
		{`{"all": [{"key": "a", "operator": "Equals", "value": 1, "values": 2}]}`, "/all/0/values: unknown field", "misspelt"},
		{`{"all": [{"operator": "Equals", "value": 1}]}`, "/all/0: key is missing", "no key"},
		{`{"all": [{"key": "a", "operator": "NotEquals"}]}`, "/all/0: value is missing", "no value"},
		{`{"all": [{"key": "a", "value": 1}]}`, "/all/0/operator: want the name", "no operator"},
		{`{"all": [{"key": "a", "operator": "equals", "value": 1}]}`, `/all/0/operator: unknown operator "equals": want one of Equal, Equals, NotEqual,`, "case matters"},
		{`{"all": [{"key": "a", "operator": "Equals", "value": 1, "message": 2}]}`, "/all/0/message: want a string", "no text"},
		{`{"all": [{"key": "{{ a", "operator": "Equals", "value": 1}]}`, "/all/0/key: ", "a broken variable"},
		{`{"all": [{"key": "a", "operator": "Equals", "value": "{{ nope() }}"}]}`, "/all/0/value: ", "no such function"},
		{`[{"all": [{"key": "a", "operator": "X"}]}]`, "/0/all/0/operator: ", "in a list of blocks"},
		{`[` + strings.Repeat(`{"key": 1, "operator": "Equals", "value": 1},`, 1000) + `{"key": 1, "operator": "Equals", "value": 1}]`, "exceeds the bound", "too many"},
	}
	for _, test := range tests {
		_, err := condition.Compile(newEngine(t), parse(t, test.conditions))
		if compile := (*variable.CompileError)(nil); !errors.As(err, &compile) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.80s: %v does not say %q: %s", test.conditions, err, test.want, test.reason)
		}
	}
}

func FuzzEvaluate(f *testing.F) {
	f.Add(`{"any":[{"key":"{{a}}","operator":"AnyIn","value":"1-10"}]}`, `{"a":"1e9"}`)
	f.Add(`[{"key":["{{a}}"],"operator":"LessThan","value":"1Gi"}]`, `{"a":[null]}`)
	engine := newEngine(f)
	f.Fuzz(func(t *testing.T, text, document string) {
		var value any
		var ctx map[string]any
		if json.Unmarshal([]byte(text), &value) != nil || json.Unmarshal([]byte(document), &ctx) != nil {
			return
		}
		conditions, err := condition.Compile(engine, value)
		if err != nil {
			return
		}
		result, err := conditions.Evaluate(ctx)
		if err == nil && !result.Held && len(result.Outcomes) == 0 && !strings.Contains(text, "any") {
			t.Errorf("%s failed without a reason", text)
		}
	})
}

func ExampleConditions_Evaluate() {
	engine, err := jmespath.New(jmespath.Options{Now: time.Now, Random: bytes.NewReader(nil)})
	if err != nil {
		fmt.Println(err)
		return
	}
	conditions, err := condition.Compile(engine, map[string]any{"all": []any{
		map[string]any{"key": "{{ components[?name=='commons-text'].version }}", "operator": "AllNotIn", "value": []any{"1.8", "1.9"}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := conditions.Evaluate(variable.Context{"components": []any{map[string]any{"name": "commons-text", "version": "1.9"}}})
	fmt.Println(result.Held, err)
	fmt.Println(result.Decisive()[0])
	// Output:
	// false <nil>
	// expected {{ components[?name=='commons-text'].version }} AllNotIn ["1.8","1.9"], found ["1.9"]
}
