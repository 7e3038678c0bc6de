package pattern_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/pattern"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// TestAnchorsOrNames: what looks like an anchor is one only if it is.
func TestAnchorsOrNames(t *testing.T) {
	check(t, []row{
		{`{"a(b)": "x"}`, `{"a(b)": "x"}`, "held", "", "a name with parentheses"},
		{`{"a(b)": "x"}`, `{}`, "fail", "/a(b)/", "which must be there"},
		{`{"=b)": "x"}`, `{"=b)": "x"}`, "held", "", "half an anchor is a name"},
		{`{"=b)": "x"}`, `{}`, "fail", "/=b)/", "which must be there"},
		{`{")": "x"}`, `{")": "x"}`, "held", "", "a parenthesis alone is a name"},
		{`{")": "x"}`, `{}`, "fail", "/)/", "which must be there"},
		{`{"<(a)": "x", "1": "y"}`, `{"a": "z", "1": "n"}`, "skip", "/a/", "a global anchor comes before a field that is written before it"},
		{`{"<(a)": "x", "1": "y"}`, `{"a": "x", "1": "n"}`, "fail", "/1/", "it holds"},
		{`{"a": [{"(m)": "y", "<(n)": "x"}], "b": "1"}`, `{"a": [{"m": "y", "n": "z"}, {"m": "no"}], "b": "2"}`, "fail", "/b/", "one element of two does not skip the rule"},
		{`{"a": [{"(m)": "y", "<(n)": "x"}], "b": "1"}`, `{"a": [{"m": "no"}, {"m": "y", "n": "z"}], "b": "2"}`, "fail", "/b/", "in the other order"},
		{`{"a": [{"(m)": "y", "<(n)": "x"}], "b": "1"}`, `{"a": [{"m": "y", "n": "z"}], "b": "2"}`, "skip", "/a/0/n/", "each element does"},
	})
}

// TestStars: a wildcard in a key matches others in labels and annotations alone.
func TestStars(t *testing.T) {
	long := strings.Repeat("5", 65)
	check(t, []row{
		{`{"metadata": {"labels": {"(a*)": "x"}}, "z": "y"}`, `{"metadata": {"labels": {"a1": "x", "a2": "n"}}, "z": "n"}`, "fail", "/z/", "the first of two labels is enough"},
		{`{"metadata": {"labels": {"(a*)": "x"}}, "z": "y"}`, `{"metadata": {"labels": {"a1": "n", "a2": "n"}}, "z": "n"}`, "skip", "/metadata/labels/a2/", "neither is"},
	})
	r := compile(t, `{"metadata": {"labels": {"(a*)": "!5"}}, "z": "y"}`).Match(nil, decode(t, `{"metadata": {"labels": {"a1": "`+long+`", "a2": "4"}}, "z": "n"}`))
	if r.Err == nil || r.Held || r.Skip {
		t.Errorf("the first cannot be judged, and the second holds: %+v", r)
	}
}

// TestReferencesMore: references behind other text, and to fields that nearly exist.
func TestReferencesMore(t *testing.T) {
	check(t, []row{
		{`{"a": "x$(/b)", "b": "y"}`, `{"a": "xy", "b": "y"}`, "held", "", "behind a letter"},
		{`{"a": "x$(/b)", "b": "y"}`, `{"a": "x$(/b)", "b": "y"}`, "fail", "/a/", "which is no text"},
		{`{"a": "x\\$(/b)", "b": "y"}`, `{"a": "x$(/b)", "b": "y"}`, "held", "", "unless it is escaped"},
		{`{"a": "$(/b)", "(b)": "x*", "b": "xy"}`, `{"a": "xy", "b": "xy"}`, "held", "", "the key itself goes before one with an anchor"},
		{`{"a": "$(/b)", "(b)": "x*", "b": "xy"}`, `{"a": "x1", "b": "xy"}`, "fail", "/a/", "and not that one"},
		{`{"a": "$(/l/1)", "l": ["x", "y"]}`, `{"a": "y", "l": ["x", "y"]}`, "fail", "/l/", "an item of a list pattern, of which each item applies to all"},
	})
	for _, text := range []string{
		`{"a": "$(/l/x)", "l": ["x"]}`, `{"a": "$(/l/-1)", "l": ["x"]}`, `{"a": "$(/l/1)", "l": ["x"]}`, `{"a": ["$(/nothing)"]}`, `{"a": ["x", "$(/nothing)"]}`,
	} {
		if _, err := pattern.Compile(newEngine(t), decode(t, text)); err == nil {
			t.Errorf("%s compiles", text)
		}
	}
	for size, want := range map[int]bool{64 << 10: true, 64<<10 + 1: false} {
		_, err := pattern.Compile(newEngine(t), map[string]any{"a": "$(/b)", "b": strings.Repeat("x", size)})
		if (err == nil) != want {
			t.Errorf("a text of %d bytes: %v", size, err)
		}
	}
}

// TestVariablesInKeys: a key with a variable, whatever stands behind it.
func TestVariablesInKeys(t *testing.T) {
	p := compile(t, `{"{{ limit.max }}": "x", "~": "y"}`)
	for resource, want := range map[string]string{`{"1Gi": "x", "~": "y"}`: "held", `{"1Gi": "z", "~": "y"}`: "fail", `{"1Gi": "x", "~": "z"}`: "fail"} {
		if got := outcome(p.Match(data, decode(t, resource))); got != want {
			t.Errorf("%s: %s, want %s", resource, got, want)
		}
	}
}

// nested puts a value into so many lists or objects.
func nested(depth int, inObjects bool) any {
	var value any = "x"
	for range depth {
		if inObjects {
			value = map[string]any{"a": value}
		} else {
			value = []any{value}
		}
	}
	return value
}

// TestLasts: the last that is taken, and the first that is not, in a pattern and in what a
// variable brings.
func TestLasts(t *testing.T) {
	many := func(n int) any {
		list := make([]any, n-1) // and the list itself
		for i := range list {
			list[i] = 1.0
		}
		return list
	}
	taken := func(value any) bool {
		_, err := pattern.Compile(newEngine(t), value)
		return err == nil
	}
	filled := compile(t, `{"=(a)": "{{ given }}"}`)
	asVariable := func(value any) bool {
		return filled.Match(variable.Context{"given": value}, map[string]any{}).Err == nil
	}
	for _, c := range []struct {
		reason      string
		takes       func(any) bool
		last, first any
	}{
		{"lists in a pattern", taken, nested(200, false), nested(201, false)},
		{"objects in a pattern", taken, nested(200, true), nested(201, true)},
		{"lists behind another item of a pattern", taken, []any{[]any{}, nested(199, false)}, []any{[]any{}, nested(200, false)}},
		{"values in a pattern", taken, many(100_000), many(100_001)},
		{"lists in a variable", asVariable, nested(200, false), nested(201, false)},
		{"objects in a variable", asVariable, nested(200, true), nested(201, true)},
		{"values in a variable", asVariable, many(100_000), many(100_001)},
	} {
		if !c.takes(c.last) || c.takes(c.first) {
			t.Errorf("%s: the last is taken %t, the first beyond %t", c.reason, c.takes(c.last), c.takes(c.first))
		}
	}
}
