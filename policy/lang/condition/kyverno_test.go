package condition_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/condition"
	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// TestNothingWidens compares a grid of conditions with the results of Kyverno 1.19.1, which testdata/record wrote with
// Kyverno's own operators: 1 held, 0 not held, p a panic. An exemption holds only where Kyverno's does, and a precondition
// skips only where Kyverno's does; where they agree, nothing is indeterminate for that.
func TestNothingWidens(t *testing.T) {
	var grid struct {
		Source            string
		Keys, Values      []any
		Operators         []string
		Results           map[string][]string
		exempted, skipped int
	}
	data, err := os.ReadFile("testdata/kyverno-1.19.1.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &grid); err != nil {
		t.Fatal(err)
	}
	engine := newEngine(t)
	for _, operator := range grid.Operators {
		for j, value := range grid.Values {
			written := []any{map[string]any{"key": "{{ key }}", "operator": operator, "value": value}}
			neutral, err := condition.Compile(engine, written)
			if err != nil {
				continue // refused, as an order with a text
			}
			exempting, demanding := of(t, condition.CompileExempting, engine, written), of(t, condition.CompileDemanding, engine, written)
			for i, key := range grid.Keys {
				context := variable.Context{"key": key}
				here, exempt, demand := evaluated(t, neutral, context), evaluated(t, exempting, context), evaluated(t, demanding, context)
				kyverno := grid.Results[operator][i][j]
				if exempt == "held" && kyverno != '1' || demand == "not" && kyverno != '0' {
					t.Errorf("%v %s %v: exempts %s, skips %s, and in Kyverno %c", key, operator, value, exempt, demand, kyverno)
				}
				// A bar in a range is unknown, and whether the number 1e6 equals this text depends on its origin.
				agrees := value != "|1-10" && (value != "1e+06" || key != 1e6)
				if agrees && (kyverno == '1' && here != exempt || kyverno == '0' && here != demand) {
					t.Errorf("%v %s %v: %s here, in Kyverno %c, exempts %s, skips %s", key, operator, value, here, kyverno, exempt, demand)
				}
				if exempt == "held" {
					grid.exempted++
				}
				if demand == "not" {
					grid.skipped++
				}
			}
		}
	}
	if grid.exempted < 10000 || grid.skipped < 10000 {
		t.Errorf("%d exempted, %d skipped: the grid shows nothing", grid.exempted, grid.skipped)
	}
}

// TestWholeNumbers: a whole number of a request may be an int64 in Kyverno, and one of a policy or a function a float64, which
// the grid has. The results of both count.
func TestWholeNumbers(t *testing.T) {
	engine := newEngine(t)
	for _, c := range []struct {
		key               any
		operator          string
		value             any
		exempts, evaluate string
		reason            string
	}{
		{10.0, "Equals", "10", "held", "held", "the same number as text"},
		{10.0, "Equals", "10.0", "doubt", "held", "an int64 equals no text with a fraction"},
		{10.0, "NotEquals", "10.0", "not", "doubt", "so that it differs from it"},
		{10.0, "NotEquals", "1e1", "not", "doubt", "nor one with an exponent"},
		{10.5, "NotEquals", "10.50", "not", "not", "a number with a fraction is read as one"},
		{10.0, "NotEquals", "10", "not", "not", "the same number as text"},
		{10.0, "AnyIn", []any{10.0, 20.0}, "held", "held", "small numbers have one text"},
		{1e6, "AnyIn", []any{1e6, 20.0}, "doubt", "held", "1000000 is not 1e+06"},
		{1e6, "AllNotIn", []any{1e6, 20.0}, "not", "doubt", "so that it is not in the list"},
		{1e6, "AnyNotIn", []any{"1000001"}, "held", "held", "another number in both forms"},
		{[]any{1e6}, "AnyNotIn", 1e6, "not", "doubt", "the value alone is a list of one"},
		{[]any{1e3}, "AnyNotIn", 1e3, "not", "not", "a small number in it"},
		{"1000000", "AnyIn", []any{1e6}, "doubt", "held", "the text of the other form"},
	} {
		written := []any{map[string]any{"key": "{{ key }}", "operator": c.operator, "value": c.value}}
		context := variable.Context{"key": c.key}
		if got := evaluated(t, of(t, condition.CompileExempting, engine, written), context); got != c.exempts {
			t.Errorf("%v %s %v exempts: %s, want %s: %s", c.key, c.operator, c.value, got, c.exempts, c.reason)
		}
		if got := evaluated(t, of(t, condition.CompileDemanding, engine, written), context); got != c.evaluate {
			t.Errorf("%v %s %v: %s, want %s: %s", c.key, c.operator, c.value, got, c.evaluate, c.reason)
		}
	}
}

// TestTextIsNoQuantity: a hash that ends like an exponent, and long text, are compared as text.
func TestTextIsNoQuantity(t *testing.T) {
	engine := newEngine(t)
	hash := "0aed6dcda825376d9db8635e834cbb84909e0462baed40cd5eff1297de472425"
	for _, c := range []struct{ key, value, want, reason string }{
		{hash, hash, "held", "ends in e472425"},
		{hash, strings.Replace(hash, "0a", "0b", 1), "not", "another hash"},
		{"sha256:" + hash, "sha256:" + hash, "held", "longer than any quantity"},
		{"sha256:" + hash, hash, "not", "without the algorithm"},
		{strings.Repeat("team/", 40), strings.Repeat("team/", 40), "held", "a long path"},
		{"1e472425", "1e472426", "doubt", "a number past the bound"},
		{"12e4567", "12e4567", "held", "a short hash in the form of a number past the bound"},
		{"12e4567", "1f3a9bc", "not", "another short hash, which is no number"},
		{"1f3a9bc", "12e4567", "not", "the same with the sides exchanged"},
		{"12e4567", "0", "doubt", "a number beside one past the bound"},
		{strings.Repeat("7", 617), strings.Repeat("7", 617), "held", "the digits of a key's modulus"},
		{strings.Repeat("1", 65), strings.Repeat("1", 64) + "2", "doubt", "more digits than the bound"},
	} {
		for _, operator := range []string{"Equals", "AnyIn"} {
			want := c.want
			if operator == "AnyIn" && want == "doubt" {
				want = "not" // Kyverno compares the members of a set as text
			}
			written := []any{map[string]any{"key": "{{ key }}", "operator": operator, "value": c.value}}
			demanding, exempting := of(t, condition.CompileDemanding, engine, written), of(t, condition.CompileExempting, engine, written)
			context := variable.Context{"key": c.key}
			if got := evaluated(t, demanding, context); got != want {
				t.Errorf("%s %s %s = %s, want %s: %s", c.key, operator, c.value, got, want, c.reason)
			}
			if got := evaluated(t, exempting, context); (got == "held") != (want == "held") {
				t.Errorf("%s %s %s exempts: %s, want %s: %s", c.key, operator, c.value, got, want, c.reason)
			}
		}
	}
}

func of(t *testing.T, compile func(*jmespath.Engine, any) (*condition.Conditions, error), engine *jmespath.Engine, value any) *condition.Conditions {
	t.Helper()
	compiled, err := compile(engine, value)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func evaluated(t *testing.T, conditions *condition.Conditions, context variable.Context) string {
	t.Helper()
	result, err := conditions.Evaluate(context)
	if err != nil {
		t.Fatal(err)
	}
	if result.Held || result.Indeterminate {
		return answer(result)
	}
	return "not"
}
