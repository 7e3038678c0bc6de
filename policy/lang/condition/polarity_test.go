package condition_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// uses are what conditions may decide, and where their data may come from.
func uses(engine *jmespath.Engine) map[string]func(value any) (*condition.Conditions, error) {
	return map[string]func(any) (*condition.Conditions, error){
		"precondition":      func(value any) (*condition.Conditions, error) { return condition.Compile(engine, value) },
		"deny":              func(value any) (*condition.Conditions, error) { return condition.CompileDeny(engine, value) },
		"statement":         func(value any) (*condition.Conditions, error) { return condition.Compile(engine.Foreign(), value) },
		"deny of statement": func(value any) (*condition.Conditions, error) { return condition.CompileDeny(engine.Foreign(), value) },
	}
}

// in evaluates a condition in each use. Key and value are JSON, in which {{ key }} and
// {{ value }} are the data.
func in(t *testing.T, key, operator, value string, data variable.Context) map[string]string {
	t.Helper()
	found := map[string]string{}
	for use, compile := range uses(newEngine(t)) {
		conditions, err := compile(parse(t, fmt.Sprintf(`[{"key": %s, "operator": %q, "value": %s}]`, key, operator, value)))
		if err != nil {
			t.Fatalf("%s %s %s: %v", key, operator, value, err)
		}
		result, err := conditions.Evaluate(data)
		found[use] = answer(result)
		if err != nil || found[use] == "doubt" && result.Cause() == nil {
			t.Errorf("%s %s %s as %s: %s, %v, cause %v", key, operator, value, use, found[use], err, result.Cause())
		}
		if found[use] == "unsure" {
			found[use] = "not"
		}
	}
	return found
}

// TestOperatorsByUse crosses operators with possible data and with the use of the condition.
// As a deny condition, "held" and "doubt" deny; as a precondition, they have the
// rule evaluated; of a statement, "held" alone passes.
func TestOperatorsByUse(t *testing.T) {
	const key, value = `"{{ key }}"`, `"{{ value }}"`
	wild := []any{"*"}
	for _, c := range []struct {
		reason, key, operator, value                   string
		found, given                                   any
		precondition, deny, statement, denyOfStatement string
	}{
		// A wildcard in the data.
		{"a wildcard covers", key, "AnyIn", `["bind", "escalate"]`, wild, nil, "doubt", "held", "doubt", "held"},
		{"alone", key, "AnyIn", `["escalate"]`, "*", nil, "doubt", "held", "doubt", "held"},
		{"at the end", key, "AnyIn", `["escalate"]`, []any{"get", "esc*"}, nil, "doubt", "held", "doubt", "held"},
		{"of one character", key, "AnyIn", `["escalate"]`, []any{"escalat?"}, nil, "doubt", "held", "doubt", "held"},
		{"of other texts", key, "AnyIn", `["escalate"]`, []any{"get*"}, nil, "not", "not", "not", "not"},
		{"covers all", key, "AllIn", `["escalate"]`, wild, nil, "doubt", "held", "doubt", "held"},
		{"not all are covered", key, "AllIn", `["escalate"]`, []any{"*", "get"}, nil, "not", "not", "not", "not"},
		{"by the old name", key, "In", `["escalate"]`, wild, nil, "doubt", "held", "doubt", "held"},
		{"equals", key, "Equals", `"escalate"`, "*", nil, "doubt", "held", "doubt", "held"},
		{"a list equals", key, "Equals", `["escalate"]`, wild, nil, "doubt", "doubt", "doubt", "doubt"},
		{"a list equals to the letter", key, "Equals", `["escalate"]`, []any{"escalate"}, nil, "held", "held", "held", "held"},
		{"a list does not equal", key, "Equals", `["escalate"]`, []any{"get"}, nil, "not", "not", "not", "not"},
		{"has more than the allowed ones", key, "AnyNotIn", `["get", "list"]`, wild, nil, "doubt", "doubt", "doubt", "doubt"},
		{"is not absent", key, "AllNotIn", `["escalate"]`, wild, nil, "doubt", "doubt", "doubt", "doubt"},
		{"is not absent, by the old name", key, "NotIn", `["escalate"]`, wild, nil, "doubt", "doubt", "doubt", "doubt"},
		{"does not differ", key, "NotEquals", `"escalate"`, "*", nil, "doubt", "doubt", "doubt", "doubt"},
		{"differs", key, "NotEquals", `"escalate"`, "g*", nil, "held", "held", "held", "held"},
		{"in the value", `"escalate"`, "AnyIn", value, nil, wild, "doubt", "held", "doubt", "held"},
		{"in the value, alone", `"escalate"`, "Equals", value, nil, "esc*", "doubt", "held", "doubt", "held"},
		{"in the value, other texts", `"escalate"`, "AnyIn", value, nil, []any{"get*"}, "not", "not", "not", "not"},
		{"in the value, of the forbidden ones", `"escalate"`, "AllNotIn", value, nil, wild, "doubt", "doubt", "doubt", "doubt"},
		{"overlaps the policy's", key, "AnyIn", `["esc*"]`, []any{"*late"}, nil, "doubt", "doubt", "doubt", "doubt"},
		{"ends otherwise, and may begin like the policy's", key, "AnyIn", `["esc*"]`, []any{"*get", "b*"}, nil, "doubt", "doubt", "doubt", "doubt"},
		{"begins otherwise", key, "AnyIn", `["esc*"]`, []any{"get*"}, nil, "not", "not", "not", "not"},
		{"the policy's own, around data", `"{{ key }}/*"`, "AnyIn", `["a/b"]`, "a", nil, "held", "held", "held", "held"},
		{"a question mark in a link", key, "AllNotIn", `["https://evil/*"]`, []any{"https://good/a?b=c"}, nil, "held", "held", "held", "held"},
		// A range in the data.
		{"a range in the data", `5`, "AnyIn", value, nil, "1-10", "doubt", "doubt", "doubt", "doubt"},
		{"a key in no order with a range", key, "AnyNotIn", `"1-10"`, "a", nil, "doubt", "doubt", "doubt", "doubt"},
		// Another kind.
		{"a text that reads as true", key, "Equals", `true`, "true", nil, "doubt", "doubt", "doubt", "doubt"},
		{"in capitals", key, "Equals", `true`, " TRUE ", nil, "doubt", "doubt", "doubt", "doubt"},
		{"a text that reads as false", key, "Equals", `true`, "false", nil, "not", "not", "doubt", "doubt"},
		{"no text", key, "Equals", `true`, "", nil, "not", "not", "doubt", "doubt"},
		{"true, not its text", key, "Equals", `"true"`, true, nil, "doubt", "doubt", "doubt", "doubt"},
		{"differs from true", key, "NotEquals", `true`, "true", nil, "doubt", "doubt", "doubt", "doubt"},
		{"no text differs from true", key, "NotEquals", `true`, "", nil, "held", "held", "doubt", "doubt"},
		{"a list that holds true", key, "Equals", `true`, []any{false, true}, nil, "doubt", "doubt", "doubt", "doubt"},
		{"a list that does not", key, "Equals", `true`, []any{false}, nil, "not", "not", "doubt", "doubt"},
		{"a list of lists that holds it", key, "NotEquals", `true`, []any{[]any{"yes"}}, nil, "doubt", "doubt", "doubt", "doubt"},
		{"an object that holds it", key, "Equals", `"FAIL"`, map[string]any{"is": "FAIL"}, nil, "doubt", "doubt", "doubt", "doubt"},
		{"a text in a value that is a list", key, "Equals", `["FAIL"]`, "FAIL", nil, "doubt", "doubt", "doubt", "doubt"},
		{"an object among texts", key, "AnyIn", `["FAIL"]`, map[string]any{"is": "FAIL"}, nil, "doubt", "doubt", "doubt", "doubt"},
		// Null, or a missing field with a null in its place.
		{"null is no text", key, "Equals", `"a"`, nil, nil, "not", "not", "not", "not"},
		{"null is null where it is written out", key, "Equals", `null`, nil, nil, "held", "held", "held", "held"},
		{"two missing values are not the same", key, "Equals", value, nil, nil, "not", "not", "doubt", "doubt"},
		{"nor do they differ", key, "NotEquals", value, nil, nil, "not", "not", "not", "not"},
		{"a missing value is not one that is there", key, "Equals", value, nil, "a", "not", "not", "not", "not"},
		{"null differs", key, "NotEquals", `"a"`, nil, nil, "doubt", "doubt", "doubt", "doubt"},
		{"null in a set", key, "AnyIn", `["a"]`, nil, nil, "not", "not", "doubt", "doubt"},
		{"null outside of a set", key, "AllNotIn", `["a"]`, nil, nil, "doubt", "doubt", "doubt", "doubt"},
		{"null has no order", key, "GreaterThan", `7`, nil, nil, "not", "not", "doubt", "doubt"},
		{"nor downwards", key, "LessThanOrEquals", `7`, nil, nil, "not", "not", "doubt", "doubt"},
		{"nor as a duration", key, "DurationGreaterThan", `"1h"`, nil, nil, "not", "not", "doubt", "doubt"},
		{"nor has a null value", `5`, "GreaterThan", value, nil, nil, "not", "not", "doubt", "doubt"},
		// No order.
		{"a text and a number", key, "GreaterThan", `7`, "high", nil, "doubt", "doubt", "doubt", "doubt"},
		{"a text and a number, downwards", key, "LessThan", `7`, "high", nil, "doubt", "doubt", "doubt", "doubt"},
		{"a list and a number", key, "GreaterThanOrEquals", `7`, []any{9.8}, nil, "doubt", "doubt", "doubt", "doubt"},
		{"an object and a number", key, "GreaterThan", `7`, map[string]any{}, nil, "doubt", "doubt", "doubt", "doubt"},
		{"a boolean and a number", key, "GreaterThan", `7`, true, nil, "doubt", "doubt", "doubt", "doubt"},
		{"a text and a version", key, "LessThan", `"2.17.0"`, "latest", nil, "doubt", "doubt", "doubt", "doubt"},
		{"a number in the value's place", `5`, "LessThan", value, nil, "high", "doubt", "doubt", "doubt", "doubt"},
		{"numeric text", key, "GreaterThan", `7`, "9.8", nil, "held", "held", "held", "held"},
		{"a quantity", key, "LessThan", `"1Gi"`, "2Gi", nil, "not", "not", "not", "not"},
		{"a version", key, "LessThan", `"2.17.0"`, "2.14.0", nil, "held", "held", "held", "held"},
		{"a duration", key, "DurationGreaterThan", `"1h"`, "2h", nil, "held", "held", "held", "held"},
	} {
		found := in(t, c.key, c.operator, c.value, variable.Context{"key": c.found, "value": c.given})
		want := map[string]string{"precondition": c.precondition, "deny": c.deny, "statement": c.statement, "deny of statement": c.denyOfStatement}
		for use := range want {
			if found[use] != want[use] {
				t.Errorf("%s: %s %s %s (%v, %v) as %s: %s, want %s", c.reason, c.key, c.operator, c.value, c.found, c.given, use, found[use], want[use])
			}
		}
	}
}

// TestForeignByName: an order over null is indeterminate where a condition reads what an
// image brings, and not beside it.
func TestForeignByName(t *testing.T) {
	engine := newEngine(t).Foreign("config")
	data := variable.Context{"config": map[string]any{"layers": nil}, "request": map[string]any{"replicas": nil, "key": "layers"}}
	for key, want := range map[string]string{
		"{{ config.layers }}": "doubt", "{{ request.replicas }}": "unsure", "{{ config.{{ request.key }} }}": "doubt",
		"{{ request.replicas || config.layers }}": "doubt", "{{ @.request.replicas }}": "unsure",
	} {
		conditions, err := condition.Compile(engine, []any{map[string]any{"key": key, "operator": "GreaterThan", "value": 1.0}})
		if err != nil {
			t.Fatal(err)
		}
		if result, err := conditions.Evaluate(data); err != nil || answer(result) != want {
			t.Errorf("%s: %s, %v; want %s", key, answer(result), err, want)
		}
	}
}

// TestLiteralsWithoutOrder: a text that can never compare is refused.
func TestLiteralsWithoutOrder(t *testing.T) {
	for _, operator := range condition.Operators() {
		if !strings.Contains(operator, "Than") {
			continue
		}
		for literal, ok := range map[string]bool{
			`"abc"`: false, `true`: false, `null`: false, `[1]`: false, `{}`: false, `""`: false,
			`7`: true, `"7h"`: true, `"{{ key }}"`: true, `"7Gi"`: !strings.HasPrefix(operator, "Duration"), `"1.2.3"`: !strings.HasPrefix(operator, "Duration"),
		} {
			for _, side := range []string{"key", "value"} {
				other := "value"
				if side == other {
					other = "key"
				}
				_, err := condition.Compile(newEngine(t), parse(t, fmt.Sprintf(`{"all": [{%q: "{{ x }}", "operator": %q, %q: %s}]}`, other, operator, side, literal)))
				if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "/all/0/"+side+": ") {
					t.Errorf("%s as %s of %s: %v", literal, side, operator, err)
				}
			}
		}
	}
}

// TestBlocksOfThreeValues: the truth tables of any and all.
func TestBlocksOfThreeValues(t *testing.T) {
	one := func(key string) string { return fmt.Sprintf(`{"key": %s, "operator": "Equals", "value": true}`, key) }
	values := map[string]string{"held": one("true"), "unsure": one("null"), "doubt": one(`"true"`)}
	rank := []string{"unsure", "doubt", "held"}
	for a, first := range values {
		for b, second := range values {
			low, high := min(slices.Index(rank, a), slices.Index(rank, b)), max(slices.Index(rank, a), slices.Index(rank, b))
			for text, want := range map[string]string{
				`{"all": [` + first + "," + second + `]}`:                                  rank[low],
				`{"any": [` + first + "," + second + `]}`:                                  rank[high],
				`{"any": [` + first + `], "all": [` + second + `]}`:                        rank[low],
				`[{"any": [` + first + `]}, {"any": [` + second + `]}]`:                    rank[low],
				`[` + first + "," + second + `]`:                                           rank[low],
				`{"any": [` + first + "," + second + `], "all": [` + values["held"] + `]}`: rank[high],
			} {
				conditions, err := condition.Compile(newEngine(t), parse(t, text))
				if err != nil {
					t.Fatal(err)
				}
				result, err := conditions.Evaluate(nil)
				got := answer(result)
				if got == "not" {
					got = "unsure"
				}
				if err != nil || got != want || (result.Cause() != nil) != (want == "doubt") {
					t.Errorf("%s: %s, %v; want %s", text, got, err, want)
				}
			}
		}
	}
}
