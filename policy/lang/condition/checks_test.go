package condition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// answer returns the result of conditions as a word.
func answer(result condition.Result) string {
	switch {
	case result.Held:
		return "held"
	case result.Indeterminate:
		return "doubt"
	case slices.ContainsFunc(result.Outcomes, func(o condition.Outcome) bool { return o.Why != "" }):
		return "unsure"
	}
	return "not"
}

// TestOperatorsMore: pairs that are nearly of one kind, and ends of ranges.
func TestOperatorsMore(t *testing.T) {
	const held, not, unsure, doubt = "held", "not", "unsure", "doubt"
	long := func(n int) string { return strings.Repeat("0", n-3) + "1-2" }
	for _, c := range []struct{ reason, key, operator, value, want string }{
		{"a number and a pattern", `1`, "Equals", `"*"`, doubt},
		{"a text without letters and a number", `""`, "Equals", `5`, unsure},
		{"a large number as text", `1e15`, "AnyIn", `["1000000000000000"]`, held},
		{"a small number as text", `0.0000001`, "AnyIn", `["0.0000001"]`, held},
		{"below a range", `0`, "AnyIn", `"1-10"`, not},
		{"the lower end of a range", `1`, "AnyIn", `"1-10"`, held},
		{"a range as long as may be, with an end that is too long for a quantity", `1`, "AnyIn", `"` + long(100) + `"`, doubt},
		{"a longer one is a text", `1`, "AnyIn", `"` + long(101) + `"`, not},
		{"a longer one is that text", `"` + long(101) + `"`, "AnyIn", `"` + long(101) + `"`, held},
		{"no range: the beginning is no number", `"x-5"`, "AnyIn", `"x-5"`, held},
		{"no range: the end is no number", `"5-x"`, "AnyIn", `"5-x"`, held},
		{"no range: neither is", `"a-b"`, "AnyIn", `"a-b"`, held},
		{"no range: a sign is no unit", `"5$-6"`, "AnyIn", `"5$-6"`, held},
		{"no range: a foreign letter is no unit", `"5é-6"`, "AnyIn", `"5é-6"`, held},
		{"no range: an underscore is no unit", `"5_-6"`, "AnyIn", `"5_-6"`, held},
		{"a range of unknown units", `"1a-2z"`, "AnyIn", `"1a-2z"`, doubt},
		{"a range of unknown units, in capitals", `"1A-2Z"`, "AnyIn", `"1A-2Z"`, doubt},
		{"of a range only the lower end can be compared", `"2h"`, "AnyIn", `"1h-5Gi"`, doubt},
		{"of a range only the upper end can be compared", `"2h"`, "AnyIn", `"1Gi-5h"`, doubt},
		{"not less than itself", `1`, "LessThan", `1`, not},
		{"less", `1`, "LessThan", `2`, held},
		{"a number beyond all quantities", `1e300`, "GreaterThan", `1`, held},
		{"no version", `"latest"`, "LessThan", `"1.0.0"`, doubt},
		{"than no version", `"1.0.0"`, "GreaterThan", `"latest"`, doubt},
		{"a duration and a word", `"1h"`, "GreaterThan", `"abc"`, doubt},
		{"a quantity and a word", `"5"`, "GreaterThan", `"abc"`, doubt},
		{"a unit alone is zero", `"Ki"`, "Equals", `"0"`, doubt},
		{"a unit alone is zero, and does not differ", `"m"`, "NotEquals", `"0"`, doubt},
		{"zero is a unit alone", `"0Mi"`, "Equals", `"e5"`, doubt},
		{"a unit with a number is not", `"1Ki"`, "Equals", `"0"`, not},
		{"a unit alone is not five", `"Ki"`, "NotEquals", `"5"`, held},
		{"an exponent alone is zero, however large", `"e99999"`, "Equals", `"0"`, doubt},
		{"an exponent of a number is not", `"12e4567"`, "Equals", `"0"`, not},
		{"units are texts", `"m"`, "NotEquals", `"E"`, held},
		{"a word is no unit", `"Kix"`, "NotEquals", `"0"`, held},
		{"null is no time", `null`, "DurationLessThan", `"1m"`, unsure},
		{"nor is a list", `[1]`, "DurationLessThan", `"1m"`, doubt},
	} {
		if result, err := judged(t, c.key, c.operator, c.value, nil); err != nil || answer(result) != c.want {
			t.Errorf("%s: %s %s %s: %s, %v; want %s", c.reason, c.key, c.operator, c.value, answer(result), err, c.want)
		}
	}
}

// TestUnlikeKinds: a missing value, or one of another kind than the value it is compared with, is
// no evidence that something is absent or differs.
func TestUnlikeKinds(t *testing.T) {
	const held, not, unsure, doubt = "held", "not", "unsure", "doubt"
	for _, c := range []struct{ reason, key, operator, value, want string }{
		{"both verdicts are there", `["PASS", "PASS"]`, "AllNotIn", `["FAIL"]`, held},
		{"one verdict is missing", `["PASS", null]`, "AllNotIn", `["FAIL"]`, doubt},
		{"one is missing, another settles it", `["FAIL", null]`, "AllNotIn", `["FAIL"]`, not},
		{"one verdict is an object", `["PASS", {"is": "FAIL"}]`, "AllNotIn", `["FAIL"]`, doubt},
		{"one verdict is a list", `["PASS", ["FAIL"]]`, "AllNotIn", `["FAIL"]`, doubt},
		{"one is missing, another differs", `["PASS", null]`, "AnyNotIn", `["FAIL"]`, held},
		{"one is missing, the other is in", `["FAIL", null]`, "AnyNotIn", `["FAIL"]`, doubt},
		{"one is missing, the other is in, by the old name", `["FAIL", null]`, "NotIn", `["FAIL"]`, doubt},
		{"a missing value is none of them", `["PASS", null]`, "AnyIn", `["FAIL"]`, not},
		{"a missing value is not all of them", `["PASS", null]`, "AllIn", `["PASS"]`, not},
		{"a missing value is no text of four letters", `[null]`, "AllIn", `["null"]`, doubt},
		{"a missing value is no text at all", `[null]`, "AllIn", `["*"]`, doubt},
		{"a list is no text that looks like it", `[["a"]]`, "AnyIn", `["*a*"]`, doubt},
		{"a list is that list", `[["a"]]`, "AnyIn", `[["a"]]`, held},
		{"a list is not another one", `[["a"]]`, "AllNotIn", `[["b"]]`, held},
		{"an object is that object", `[{"a": 1}]`, "AnyIn", `[{"a": 1}]`, held},
		{"an object is no list", `[{"a": 1}]`, "AllNotIn", `[["a"]]`, doubt},
		{"an object is not another one", `[{"a": 1}]`, "AllNotIn", `[{"a": 2}]`, held},
		{"null is null", `[null]`, "AllIn", `[null]`, held},
		{"a number is its text", `[8]`, "AllNotIn", `["8"]`, not},
		{"a boolean is its text", `[true]`, "AllNotIn", `["true"]`, not},

		{"a text differs from another one", `"PASS"`, "NotEquals", `"FAIL"`, held},
		{"a list may hold that text", `["FAIL"]`, "NotEquals", `"FAIL"`, doubt},
		{"an object may hold it", `{"is": "FAIL"}`, "NotEquals", `"FAIL"`, doubt},
		{"a text may denote a boolean", `"true"`, "NotEquals", `true`, doubt},
		{"and a boolean for a text", `true`, "NotEquals", `"true"`, doubt},
		{"a boolean differs from the other one", `false`, "NotEquals", `true`, held},
		{"a text may denote a number", `"9 "`, "NotEquals", `9`, doubt},
		{"a number differs from another one", `8`, "NotEquals", `9`, held},
		{"a number differs from one as text", `8`, "NotEquals", `"9"`, held},
		{"a list differs from another one", `[1]`, "NotEquals", `[2]`, held},
		{"a text may denote a boolean, asked the other way", `"true"`, "Equals", `true`, doubt},
		{"a boolean is not the other one", `false`, "Equals", `true`, not},
		{"an object may hold a text", `{"is": "FAIL"}`, "Equals", `"FAIL"`, doubt},
		{"no text is nothing", `""`, "Equals", `null`, not},
		{"nothing equals no text", `null`, "Equals", `"FAIL"`, not},
	} {
		if result, err := judged(t, c.key, c.operator, c.value, nil); err != nil || answer(result) != c.want {
			t.Errorf("%s: %s %s %s: %s, %v; want %s", c.reason, c.key, c.operator, c.value, answer(result), err, c.want)
		}
	}
}

// judged evaluates one condition, of which key and value are JSON. Those of an operator of
// order come from the data, for as literals some are refused.
func judged(t *testing.T, key, operator, value string, data variable.Context) (condition.Result, error) {
	t.Helper()
	if strings.Contains(operator, "Than") {
		data, key, value = variable.Context{"key": parse(t, key), "value": parse(t, value)}, `"{{ key }}"`, `"{{ value }}"`
	}
	conditions, err := condition.Compile(newEngine(t), parse(t, fmt.Sprintf(`[{"key": %s, "operator": %q, "value": %s}]`, key, operator, value)))
	if err != nil {
		t.Fatalf("%s %s %s: %v", key, operator, value, err)
	}
	return conditions.Evaluate(data)
}

// TestRoundedNumbers: JSON numbers past 2^53 may be their neighbours, which decides nothing
// unless the neighbours say the same.
func TestRoundedNumbers(t *testing.T) {
	const held, not, doubt = "held", "not", "doubt"
	for _, c := range []struct{ reason, key, operator, value, want string }{
		{"the last that is exact", `9007199254740991`, "Equals", `9007199254740991`, held},
		{"the last that is exact, and its neighbour", `9007199254740991`, "NotEquals", `9007199254740990`, held},
		{"the first that may be another one", `9007199254740993`, "Equals", `9007199254740992`, doubt},
		{"the same below nothing", `-9007199254740993`, "Equals", `-9007199254740992`, doubt},
		{"it is not known whether it differs", `9007199254740993`, "NotEquals", `9007199254740992`, doubt},
		{"written as text both are compared as written", `"9007199254740993"`, "NotEquals", `"9007199254740992"`, held},
		{"the value is text", `9007199254740993`, "Equals", `"9007199254740992"`, doubt},
		{"the key is text", `"9007199254740992"`, "Equals", `9007199254740993`, doubt},
		{"far from each other", `9007199254740993`, "NotEquals", `9007199254750000`, held},
		{"far above", `9007199254740993`, "GreaterThan", `7`, held},
		{"a key just above", `9007199254740993`, "GreaterThan", `9007199254740992`, doubt},
		{"a key as far as the value, as text", `9007199254740993`, "LessThanOrEquals", `"9007199254740992"`, doubt},
		{"one of a set", `9007199254740993`, "AnyIn", `[9007199254740992]`, doubt},
		{"none of a set", `9007199254740993`, "AllNotIn", `["9007199254740994"]`, doubt},
		{"none of a set that is far off", `9007199254740993`, "AllNotIn", `["7", "a"]`, held},
		{"its digits are not those that were written", `9007199254740993`, "AllNotIn", `["*3"]`, doubt},
		{"a small one's are", `13`, "AllNotIn", `["*3"]`, not},
		{"at the end of a range", `9007199254740993`, "AnyIn", `"1-9007199254740992"`, doubt},
		{"at the beginning of a range", `9007199254740993`, "AnyIn", `"9007199254740994-9007199254750000"`, doubt},
		{"within a range", `9007199254740993`, "AnyIn", `"1-9007199254750000"`, held},
	} {
		if result, err := judged(t, c.key, c.operator, c.value, nil); err != nil || answer(result) != c.want {
			t.Errorf("%s: %s %s %s: %s, %v; want %s", c.reason, c.key, c.operator, c.value, answer(result), err, c.want)
		}
	}
}

// TestRangesOfPolicies: a range is one where the policy spells out its dash.
func TestRangesOfPolicies(t *testing.T) {
	const held, not, doubt = "held", "not", "doubt"
	for _, c := range []struct{ reason, key, operator, value, want string }{
		{"a range of the policy", `5`, "AnyIn", `"1-10"`, held},
		{"a range of the policy with ends from the data", `5`, "AnyIn", `"{{ low }}-{{ high }}"`, held},
		{"a range that arrives", `5`, "AnyIn", `"{{ range }}"`, doubt},
		{"a range that arrives, asked the other way", `5`, "AllNotIn", `"{{ range }}"`, doubt},
		{"outside of a range that arrives", `11`, "AnyIn", `"{{ range }}"`, not},
		{"outside, asked the other way", `11`, "AllNotIn", `"{{ range }}"`, held},
		{"the text that arrives", `"1-10"`, "AnyIn", `"{{ range }}"`, doubt},
		{"a dash within a variable is none of the policy's", `5`, "AnyIn", `"{{ range || '1-1' }}"`, doubt},
	} {
		data := variable.Context{"low": "1", "high": "10", "range": "1-10"}
		if result, err := judged(t, c.key, c.operator, c.value, data); err != nil || answer(result) != c.want {
			t.Errorf("%s: %s %s %s: %s, %v; want %s", c.reason, c.key, c.operator, c.value, answer(result), err, c.want)
		}
	}
}

// TestAbsentValue: a value that is not in the data is nothing to differ from; one that the
// policy leaves out is.
func TestAbsentValue(t *testing.T) {
	for value, want := range map[string]string{`null`: "held", `"{{ of.absent || null }}"`: "doubt", `"{{ of.there }}"`: "held"} {
		data := variable.Context{"of": map[string]any{"there": "b"}}
		if result, err := judged(t, `"a"`, "NotEquals", value, data); err != nil || answer(result) != want {
			t.Errorf("a NotEquals %s: %s, %v; want %s", value, answer(result), err, want)
		}
	}
	if result, err := judged(t, `null`, "NotEquals", `"{{ of.absent || null }}"`, variable.Context{"of": map[string]any{}}); err != nil || answer(result) != "not" {
		t.Errorf("null NotEquals a missing value: %s, %v; want not", answer(result), err)
	}
}

// TestWildcardsOfPolicies: a wildcard is the policy's where the policy spells it out, and
// nowhere else.
func TestWildcardsOfPolicies(t *testing.T) {
	const held, not, doubt = "held", "not", "doubt"
	list := func(texts ...any) any { return []any{texts} }
	for _, c := range []struct {
		reason, value string
		found         any
		want          string
	}{
		{"the very text that arrives, star and all", `"{{ star }}"`, "*", held},
		{"a star that arrives", `"{{ star }}"`, "a", doubt},
		{"behind braces that are none of a variable", `"\\{{ a* }}"`, "{{ ab }}", held},
		{"behind such braces, and another text", `"\\{{ a* }}"`, "{{ b }}", not},
		{"behind one brace", `"{a*"`, "{ab", held},
		{"behind a brace that ends nothing", `"a}*"`, "a}b", held},
		{"behind two of them", `"a}}*"`, "a}}b", held},
		{"in an expression with a variable within", `"{{ star || '\\{{ star }}**' }}"`, "a", doubt},
		{"in a list within the list", `[["a*"]]`, list("ab"), held},
		{"in a list within the list, and another text", `[["a*"]]`, list("b"), not},
		{"in an expression of a list within the list", `[["{{ star || '*' }}"]]`, list("ab"), doubt},
	} {
		conditions, err := condition.Compile(newEngine(t), parse(t, `[{"key": "{{ found }}", "operator": "AnyIn", "value": `+c.value+`}]`))
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if result, err := conditions.Evaluate(variable.Context{"found": c.found, "star": "*"}); err != nil || answer(result) != c.want {
			t.Errorf("%s: %v in %s: %s, %v; want %s", c.reason, c.found, c.value, answer(result), err, c.want)
		}
	}
}

// TestDoubtSettled: one condition that is in doubt is nothing where another one settles it.
func TestDoubtSettled(t *testing.T) {
	const yes, no, doubt = `{"key": 1, "operator": "Equals", "value": 1}`, `{"key": 1, "operator": "Equals", "value": 2}`,
		`{"key": "a", "operator": "Equals", "value": "{{ star }}"}`
	for text, want := range map[string]string{
		`{"any": [` + doubt + `,` + yes + `]}`: "held", `{"any": [` + doubt + `,` + no + `]}`: "doubt",
		`{"any": [` + no + `]}`: "not", `{"any": null, "all": [` + yes + `]}`: "held", `{"all": [` + doubt + `]}`: "doubt",
	} {
		conditions, err := condition.Compile(newEngine(t), parse(t, text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		result, err := conditions.Evaluate(variable.Context{"star": "*"})
		if err != nil || answer(result) != want || result.Indeterminate != (want == "doubt") {
			t.Errorf("%s: %s, in doubt %t, %v; want %s", text, answer(result), result.Indeterminate, err, want)
		}
	}
}

// TestEvaluateErrorsOfAll: what cannot be filled in neither holds nor not, on either side.
func TestEvaluateErrorsOfAll(t *testing.T) {
	for _, text := range []string{
		`{"all": [{"key": "{{ a.b }}", "operator": "Equals", "value": 1}]}`,
		`{"all": [{"key": null, "operator": "Equals", "value": "{{ a.b }}"}]}`,
		`{"any": [{"key": null, "operator": "Equals", "value": "{{ a.b }}"}]}`,
	} {
		conditions, err := condition.Compile(newEngine(t), parse(t, text))
		if err != nil {
			t.Fatal(err)
		}
		if result, err := conditions.Evaluate(variable.Context{"a": map[string]any{}}); err == nil || result.Held {
			t.Errorf("%s: held %t, %v", text, result.Held, err)
		}
	}
}

// TestWorkIsBounded: an object's author may write both sides of a condition. What would
// take minutes to compare is in doubt, and what honest objects have is not.
func TestWorkIsBounded(t *testing.T) {
	names := func(prefix string, n int) []any {
		list := make([]any, n)
		for i := range list {
			list[i] = prefix + strconv.Itoa(i)
		}
		return list
	}
	large := func(n int) []any { return []any{map[string]any{"a": strings.Repeat("x", n)}} }
	of := func(pattern string, n int) string { return pattern + strings.Repeat("b", n) }
	for _, c := range []struct {
		reason     string
		operator   string
		key, value any
		want       string
	}{
		{"a thousand names in a thousand", "AnyIn", names("a", 1000), names("b", 1000), "not"},
		{"four thousand in four thousand", "AnyIn", names("a", 4000), names("b", 4000), "doubt"},
		{"or absent from them", "AllNotIn", names("a", 4000), names("b", 4000), "doubt"},
		{"two thousand that are all there", "AllIn", names("a", 2000), names("a", 2000), "held"},
		{"a match that was found before holds all the same", "AnyIn", append([]any{"b0"}, names("a", 4000)...), names("b", 4000), "held"},
		{"long objects", "AnyIn", names("a", 4000), append(large(1<<20), large(1<<20)...), "doubt"},
		{"short objects", "AnyIn", names("a", 10), append(large(100), large(100)...), "not"},
		{"a long text with a question mark", "Equals", of("", 20_000), of("a?", 20_000), "doubt"},
		{"that is not to be", "NotEquals", of("", 20_000), of("a?", 20_000), "doubt"},
		{"in a list", "AnyIn", []any{of("", 20_000)}, []any{of("a?", 20_000)}, "doubt"},
		{"a shorter one", "Equals", of("", 2_000), of("a?", 2_000), "not"},
		{"a long text without one", "Equals", of("", 1<<20), of("a*", 1<<20), "not"},
		{"the same long text", "Equals", of("a?", 20_000), of("a?", 20_000), "held"},
	} {
		conditions, err := condition.Compile(newEngine(t), []any{map[string]any{"key": "{{ key }}", "operator": c.operator, "value": "{{ value }}"}})
		if err != nil {
			t.Fatal(err)
		}
		result, err := conditions.Evaluate(variable.Context{"key": c.key, "value": c.value})
		if err != nil || answer(result) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.reason, answer(result), err, c.want)
		}
	}
}

// TestHowMany: the last condition that is taken.
func TestHowMany(t *testing.T) {
	for n, want := range map[int]bool{1000: true, 1001: false} {
		text, err := json.Marshal(make([]struct {
			Key      int    `json:"key"`
			Operator string `json:"operator"`
			Value    int    `json:"value"`
		}, n))
		if err != nil {
			t.Fatal(err)
		}
		_, err = condition.Compile(newEngine(t), parse(t, strings.ReplaceAll(string(text), `"operator":""`, `"operator":"Equals"`)))
		if (err == nil) != want || err != nil && !errors.Is(err, jmespath.ErrTooLarge) {
			t.Errorf("%d conditions: %v", n, err)
		}
	}
}

// TestLongTexts: a message has a long text cut at a whole character.
func TestLongTexts(t *testing.T) {
	for text, want := range map[string]string{
		strings.Repeat("ü", 99): `found "` + strings.Repeat("ü", 99) + `"`, "x" + strings.Repeat("ü", 100): `found "x` + strings.Repeat("ü", 99) + "...",
	} {
		outcome := condition.Outcome{Source: "a", Operator: "Equals", Key: text, Value: "b"}
		if got := outcome.String(); !strings.HasSuffix(got, want) {
			t.Errorf("%q does not end in %q", got, want)
		}
	}
}
