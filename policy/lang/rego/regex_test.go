package rego_test

import (
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/rego"
)

// TestExpressionsAreBounded: no function compiles an expression to a program without a bound, whether the
// policy writes it out, makes it, or takes it from the data.
func TestExpressionsAreBounded(t *testing.T) {
	huge := strings.Repeat("a{1000}", 500)
	for _, c := range []struct{ policy, want, reason string }{
		{`isCompliant { regex.match("^a{500}$", input.predicate.name) }`, "", "one of a usual size"},
		{`isCompliant { regex.match("HUGE", input.predicate.name) }`, "load", "one that is written out"},
		{`isCompliant { x := regex.replace("a", "HUGE", "b"); x == "a" }`, "load", "another operand"},
		{`isCompliant { re_match("HUGE", "a") }`, "load", "the old name"},
		{`p := "HUGE"` + "\nisCompliant { not regex.match(p, \"a\") }", "evaluation", "by a name"},
		{`isCompliant { not regex.match(concat("", [p | numbers.range(1, 500)[_]; p := "a{1000}"]), "a") }`, "evaluation", "a list that is joined"},
		{`isCompliant { p := concat("", ["a{900}", "a{901}", "a{902}", "a{903}", "a{904}"]); not regex.match(p, "a") }`, "evaluation", "one that is made"},
		{`isCompliant { not regex.match(input.predicate.pattern, "a") }`, "evaluation", "one of the data"},
		{`isCompliant { not regex.is_valid(input.predicate.pattern) }`, "evaluation", "one that is checked"},
		{`isCompliant { count(regex.split(input.predicate.pattern, "a")) == 0 }`, "evaluation", "one that splits"},
		{`isCompliant { count(regex.find_n(input.predicate.pattern, "a", 1)) == 0 }`, "evaluation", "one that finds"},
		{`isCompliant { count(regex.find_all_string_submatch_n(input.predicate.pattern, "a", 1)) == 0 }`, "evaluation", "one that finds groups"},
		{`isCompliant { regex.template_match("urn:{HUGE}", "urn:a", "{", "}") }`, "evaluation", "one in a template"},
		{`isCompliant { regex.template_match("urn:{a{5}}", "urn:aaaaa", "{", "}") }`, "", "a template of a usual size"},
		{"isCompliant { " + strings.Repeat(`not regex.match("a{1000}", "a"); `, 30) + "true }", "load", "many together"},
	} {
		condition, err := rego.Compile("package sigstore\n"+strings.ReplaceAll(c.policy, "HUGE", huge), rego.Options{})
		got := ""
		if err != nil {
			got = "load"
		} else if _, _, err = condition.Holds(map[string]any{"predicate": map[string]any{"name": strings.Repeat("a", 500), "pattern": huge}}); err != nil {
			got = "evaluation"
		}
		if got != c.want || err != nil && !strings.Contains(err.Error(), "instructions") {
			t.Errorf("%s: refused at %q, want %q: %v", c.reason, got, c.want, err)
		}
	}
}
