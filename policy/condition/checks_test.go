package condition_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/condition"
	"github.com/quaymaster/quaymaster/policy/jmespath"
	"github.com/quaymaster/quaymaster/policy/variable"
)

// answer says what came of conditions in a word.
func answer(result condition.Result) string {
	switch {
	case result.Held:
		return "held"
	case result.InDoubt():
		return "doubt"
	case result.Unsure() != nil:
		return "unsure"
	}
	return "not"
}

// TestOperatorsMore: pairs that are nearly of one kind, and ends of ranges.
func TestOperatorsMore(t *testing.T) {
	const held, not, unsure, doubt = "held", "not", "unsure", "doubt"
	long := func(n int) string { return strings.Repeat("0", n-3) + "1-2" }
	for _, c := range []struct{ reason, key, operator, value, want string }{
		{"a number and a pattern", `1`, "Equals", `"*"`, not},
		{"a text without letters and a number", `""`, "Equals", `5`, not},
		{"a large number as text", `1e21`, "AnyIn", `["1000000000000000000000"]`, held},
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
		{"a range of units that nobody knows", `"1a-2z"`, "AnyIn", `"1a-2z"`, doubt},
		{"a range of units that nobody knows, in capitals", `"1A-2Z"`, "AnyIn", `"1A-2Z"`, doubt},
		{"of a range only the lower end can be compared", `"2h"`, "AnyIn", `"1h-5Gi"`, doubt},
		{"of a range only the upper end can be compared", `"2h"`, "AnyIn", `"1Gi-5h"`, doubt},
		{"not less than itself", `1`, "LessThan", `1`, not},
		{"less", `1`, "LessThan", `2`, held},
		{"a number beyond all quantities", `1e300`, "GreaterThan", `1`, held},
		{"no version", `"latest"`, "LessThan", `"1.0.0"`, unsure},
		{"than no version", `"1.0.0"`, "GreaterThan", `"latest"`, unsure},
		{"a duration and a word", `"1h"`, "GreaterThan", `"abc"`, unsure},
		{"a quantity and a word", `"5"`, "GreaterThan", `"abc"`, unsure},
		{"null is no time", `null`, "DurationLessThan", `"1m"`, unsure},
		{"nor is a list", `[1]`, "DurationLessThan", `"1m"`, unsure},
	} {
		conditions, err := condition.Compile(newEngine(t), parse(t, fmt.Sprintf(`[{"key": %s, "operator": %q, "value": %s}]`, c.key, c.operator, c.value)))
		if err != nil {
			t.Errorf("%s: %v", c.reason, err)
			continue
		}
		if result, err := conditions.Evaluate(nil); err != nil || answer(result) != c.want {
			t.Errorf("%s: %s %s %s: %s, %v; want %s", c.reason, c.key, c.operator, c.value, answer(result), err, c.want)
		}
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
		if err != nil || answer(result) != want || result.InDoubt() != (want == "doubt") {
			t.Errorf("%s: %s, in doubt %t, %v; want %s", text, answer(result), result.InDoubt(), err, want)
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

// TestHowMany: the last condition that is taken.
func TestHowMany(t *testing.T) {
	for n, want := range map[int]bool{1000: true, 1001: false} {
		text, err := json.Marshal(make([]struct {
			Key      int    `json:"key"`
			Operator string `json:"operator"`
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
