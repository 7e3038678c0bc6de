package pattern_test

import (
	"errors"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/pattern"
	"github.com/quaymaster/quaymaster/policy/lang/pattern/comparison"
	"github.com/quaymaster/quaymaster/policy/lang/variable"
)

// TestLiteral: operators, ranges, wildcards and anchors are the policy's where it spells
// them out, and plain characters in the value of a variable. The author of the data neither passes a
// pattern by them nor disables a condition.
func TestLiteral(t *testing.T) {
	const doubt = "doubt" // an error that is ErrIndeterminate
	for _, c := range []struct{ reason, pattern, filled, value, want string }{
		{"the policy's own star", `"{{ x }}-*"`, "shop", "shop-sa", "held"},
		{"the policy's own star, and another text", `"{{ x }}-*"`, "shop", "admin-sa", "fail"},
		{"an alternative", `"{{ x }}-*"`, "admin-sa | shop", "admin-sa", "fail"},
		{"a negation", `"{{ x }}-*"`, "!x", "admin-sa", "fail"},
		{"a star", `"{{ x }}-*"`, "*", "admin-sa", "fail"},
		{"a star, to the letter", `"{{ x }}-*"`, "*", "*-sa", "held"},
		{"a question mark", `"{{ x }}"`, "?*", "admin", "fail"},
		{"a conjunction", `"{{ x }}"`, "a & !b", "a", "fail"},
		{"a conjunction to the letter", `"{{ x }}"`, "a & !b", "a & !b", "held"},
		{"more", `"{{ x }}"`, ">0", "5", "fail"},
		{"less", `"{{ x }}"`, "<9", "5", "fail"},
		{"a range", `"{{ x }}"`, "1-9", "5", "fail"},
		{"a range to the letter", `"{{ x }}"`, "1-9", "1-9", "held"},
		{"a range of the policy's", `"{{ x }}-9"`, "1", "5", "held"},
		{"a range of the policy's, below it", `"{{ x }}-9"`, "6", "5", "fail"},
		{"a range of the policy's, from below zero", `"{{ x }}-9"`, "-3", "-2", "held"},
		{"a range in a range", `"{{ x }}-9"`, "1-7", "5", "fail"},
		{"the policy's own operator", `">={{ x }}"`, "5", "7", "held"},
		{"the policy's own operator, and less", `">={{ x }}"`, "5", "3", "fail"},
		{"an operator behind it", `">{{ x }}"`, "=5", "5", "fail"},
		{"an amount below zero", `">{{ x }}"`, "-5", "-4", "held"},
		{"a negation of a text", `"!{{ x }}"`, "evil", "good", "held"},
		{"a negation of that text", `"!{{ x }}"`, "evil", "evil", "fail"},
		{"a negation of a star", `"!{{ x }}"`, "evil/*", "evil/a", "fail"},
		{"a negation of a star, and another text", `"!{{ x }}"`, "evil/*", "good/a", "held"},
		{"the policy's own alternatives", `"{{ x }} | b"`, "a", "b", "held"},
		{"a space at its end", `"{{ x }}"`, " a", "a", "fail"},
		{"a number as text", `"{{ x }}"`, "1024Mi", "1Gi", "held"},
		{"bytes that are no text", `"{{ x }}"`, "\xf8", "anything", "fail"},
	} {
		got := func(pattern string, resource any) string {
			r := compile(t, pattern).Match(variable.Context{"x": c.filled}, resource)
			if errors.Is(r.Err, comparison.ErrIndeterminate) {
				return doubt
			}
			return outcome(r)
		}
		object := map[string]any{"a": c.value, "b": "y"}
		if is := got(`{"a": `+c.pattern+`}`, object); is != c.want {
			t.Errorf("%s: %s with %q on %q: %s, want %s", c.reason, c.pattern, c.filled, c.value, is, c.want)
		}
		if is := got(`{"=(a)": `+c.pattern+`}`, object); is != c.want {
			t.Errorf("%s: =() with %q on %q: %s, want %s", c.reason, c.filled, c.value, is, c.want)
		}
		// As a condition: if the field next to it fails, an indeterminate condition does not skip the rule.
		if is := got(`{"(a)": `+c.pattern+`, "b": "x"}`, object); (is == "fail") != (c.want == "held") || is != "fail" && is != "skip" && is != doubt {
			t.Errorf("%s: the condition %s with %q on %q: %s", c.reason, c.pattern, c.filled, c.value, is)
		}
	}
}

// TestConditionsInDoubt: a condition that is indeterminate takes no rule back.
func TestConditionsInDoubt(t *testing.T) {
	for _, c := range []struct {
		pattern, resource, filled string
		doubt                     bool
		reason                    string
	}{
		{`{"(a)": ">5", "b": "x"}`, `{"a": "many", "b": "y"}`, "", true, "a text without an order"},
		{`{"<(a)": ">5", "b": "x"}`, `{"a": "many", "b": "y"}`, "", true, "as a global condition"},
		{`{"(a)": ">5", "b": "x"}`, `{"a": 3, "b": "y"}`, "", false, "a number"},
		{`{"(a)": ">5", "b": "x"}`, `{"a": null, "b": "y"}`, "", false, "null"},
		{`{"(a)": ">5", "b": "x"}`, `{"b": "y"}`, "", false, "a missing field"},
		{`{"(a)": ">5", "b": "x"}`, `{"a": {}, "b": "y"}`, "", true, "an object"},
		{`{"(a)": ">5 | many", "b": "x"}`, `{"a": "few", "b": "y"}`, "", true, "one alternative in doubt"},
		{`{"(a)": "1-5", "b": "x"}`, `{"a": "many", "b": "y"}`, "", true, "a range"},
		{`{"(a)": "1!-5", "b": "x"}`, `{"a": "many", "b": "y"}`, "", true, "outside of a range"},
		{`{"(a)": true, "b": "x"}`, `{"a": "True", "b": "y"}`, "", true, "a text that reads as the boolean"},
		{`{"(a)": true, "b": "x"}`, `{"a": "no", "b": "y"}`, "", false, "a text that does not"},
		{`{"(a)": "{{ x }}", "b": "x"}`, `{"a": "ab", "b": "y"}`, "a*", true, "a star that arrives"},
		{`{"(a)": "{{ x }}", "b": "x"}`, `{"a": "b", "b": "y"}`, "a*", false, "a star that decides nothing"},
		{`{"(a)": "!{{ x }}", "b": "x"}`, `{"a": "ab", "b": "y"}`, "a*", true, "a negated star that arrives"},
		{`{"metadata": {"annotations": {"(a/*)": ">5"}}, "b": "x"}`, `{"metadata": {"annotations": {"a/b": "1", "a/c": "many"}}, "b": "y"}`, "", true, "one of several keys"},
		{`{"l": [{"(a)": ">5", "b": "x"}]}`, `{"l": [{"a": "many", "b": "y"}]}`, "", true, "in a list"},
		{`{"(a)": ["x*", "y*"], "b": "x"}`, `{"a": ["x1", "x2"], "b": "y"}`, "", true, "the first item of a list, which decides in Kyverno"},
		{`{"(a)": ["x*", "y*"], "b": "x"}`, `{"a": ["y1"], "b": "y"}`, "", false, "the second item"},
		{`{"<(a)": ["x*", "y*"], "b": "x"}`, `{"a": ["x1"], "b": "y"}`, "", true, "the first item, as a global condition"},
		{`{"(a)": [{"n": "x*"}, {"n": "y*"}], "b": "x"}`, `{"a": [{"n": "x1"}], "b": "y"}`, "", true, "the first of objects"},
		{`{"(a)": [{"n": "x*"}, {"n": "y*"}], "b": "x"}`, `{"a": [{"n": "x1"}, {"n": "z"}], "b": "y"}`, "", false, "the first of objects, of one element alone"},
		{`{"(a)": {"l": ["x*", "y*"], "m": "z"}, "b": "x"}`, `{"a": {"l": ["x1"], "m": "z"}, "b": "y"}`, "", true, "the first item within the condition"},
		{`{"(a)": {"l": ["x*", "y*"], "m": "z"}, "b": "x"}`, `{"a": {"l": ["x1"], "m": "q"}, "b": "y"}`, "", false, "the first item, and a field that does not hold"},
		{`{"metadata": {"(labels)": {"*": "x"}}, "b": "x"}`, `{"metadata": {"labels": {"c": "x", "d": "z"}}, "b": "y"}`, "", true, "one of several keys within the condition"},
		{`{"metadata": {"(labels)": {"*": "x"}}, "b": "x"}`, `{"metadata": {"labels": {"c": "z", "d": "x"}}, "b": "y"}`, "", true, "the last of several keys"},
		{`{"metadata": {"(labels)": {"*": "x"}}, "b": "x"}`, `{"metadata": {"labels": {"c": "z", "d": "z"}}, "b": "y"}`, "", false, "none of several keys"},
		{`{"metadata": {"(labels)": {"*": "x"}}, "b": "x"}`, `{"metadata": {"labels": {"c": "z"}}, "b": "y"}`, "", false, "the only key"},
		{`{"metadata": {"(labels)": {"=(*)": "x", "e": "q"}}, "b": "x"}`, `{"metadata": {"labels": {"c": "x", "d": "z", "e": "q"}}, "b": "y"}`, "", true, "one of several keys with an anchor"},
		{`{"metadata": {"(labels)": {"=(*)": "x", "e": "q"}}, "b": "x"}`, `{"metadata": {"labels": {"c": "x", "d": "z", "e": "r"}}, "b": "y"}`, "", false, "and a field that does not hold"},
		{`{"(a)": {"(l)": ["x*", "y*"], "m": "z"}, "b": "x"}`, `{"a": {"l": ["x1"], "m": "z"}, "b": "y"}`, "", true, "a condition within the condition"},
		{`{"(a)": {"m": [{"(metadata)": {"labels": {"*": "x"}}}], "n": ["x*", "y*"]}, "b": "x"}`, `{"a": {"m": [{"metadata": {"labels": {"c": "z", "d": "z"}}}, {"metadata": {"labels": {"c": "x"}}}], "n": ["x1"]}, "b": "y"}`, "", true, "the first item, behind a condition within that does not hold"},
		{`{"(a)": {"m": [{"(metadata)": {"labels": {"*": "x"}}}], "n": ["x*", "y*"]}, "b": "x"}`, `{"a": {"m": [{"metadata": {"labels": {"c": "z", "d": "z"}}}, {"metadata": {"labels": {"c": "x"}}}], "n": ["y1"]}, "b": "y"}`, "", false, "the second item, behind a condition within that does not hold"},
	} {
		r := compile(t, c.pattern).Match(variable.Context{"x": c.filled}, decode(t, c.resource))
		if got := errors.Is(r.Err, comparison.ErrIndeterminate); got != c.doubt || !c.doubt && !r.Skip {
			t.Errorf("%s: %s on %s: %s %v", c.reason, c.pattern, c.resource, outcome(r), r.Err)
		}
	}
	if r := compile(t, `{"(a)": ["x*", "?1"], "l": ["x*", "y*"]}`).Match(nil, decode(t, `{"a": ["x1"], "l": ["x1"]}`)); outcome(r) != "fail" || r.Doubt != nil {
		t.Errorf("a list that is no condition, beside one that holds: %s %v", outcome(r), r.Doubt)
	}
	if _, err := pattern.Compile(newEngine(t), decode(t, `{"a": ">many"}`)); err == nil {
		t.Error("an order over a text is compiled")
	}
	if _, err := pattern.Compile(newEngine(t), decode(t, `{"a": ">{{ x }} | >=5 | <1h"}`)); err != nil {
		t.Error(err)
	}
}
