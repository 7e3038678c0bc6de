package cel_test

import (
	"testing"

	celgo "github.com/google/cel-go/cel"

	"github.com/quaymaster/quaymaster/policy/lang/cel"
)

// TestOrder: an order over values that have none is an error, which the rule turns into
// indeterminate, unless another element decides in either reading.
func TestOrder(t *testing.T) {
	const yes, no, unknown = "true", "false", "error"
	env, err := cel.NewEnv(cel.Options{Variables: []cel.Variable{{Name: "d", Type: celgo.DynType}}})
	if err != nil {
		t.Fatal(err)
	}
	finding := func(scores ...any) map[string]any {
		list := make([]any, len(scores))
		for i, score := range scores {
			list[i] = map[string]any{"score": score}
		}
		return map[string]any{"l": list, "score": scores[0]}
	}
	for _, c := range []struct {
		reason, expression string
		data               map[string]any
		want               string
	}{
		{"a number", "d.score >= 7.0", finding(9.8), yes},
		{"a small number", "d.score >= 7.0", finding(1.0), no},
		{"text", "d.score >= 7.0", finding("9.8"), unknown},
		{"text, denied", "!(d.score >= 7.0)", finding("9.8"), unknown},
		{"null", "d.score < 7.0", finding(nil), unknown},
		{"null, denied", "!(d.score < 7.0)", finding(nil), unknown},
		{"a boolean", "d.score < 7.0", finding(true), unknown},
		{"a list", "d.score > 7.0", finding([]any{9.8}), unknown},
		{"a missing field", "d.l[0].other > 7.0", finding(9.8), unknown},
		{"a filter over text", "size(d.l.filter(f, f.score >= 7.0)) == 0", finding("9.8"), unknown},
		{"a filter over null", "size(d.l.filter(f, f.score >= 7.0)) == 0", finding(1.0, nil), unknown},
		{"a filter over numbers", "size(d.l.filter(f, f.score >= 7.0)) == 0", finding(1.0, 2.0), yes},
		{"one of them decides", "d.l.exists(f, f.score >= 7.0)", finding("9.8", 8.0), yes},
		{"none of them decides", "d.l.exists(f, f.score >= 7.0)", finding("9.8", 1.0), unknown},
		{"none, denied", "!d.l.exists(f, f.score >= 7.0)", finding("9.8", 1.0), unknown},
		{"one of all decides", "d.l.all(f, f.score < 7.0)", finding("9.8", 8.0), no},
		{"none of all decides", "d.l.all(f, f.score < 7.0)", finding("9.8", 1.0), unknown},
		{"one alone", "d.l.exists_one(f, f.score >= 7.0)", finding("9.8", 8.0), unknown},
		{"mapped", "d.l.map(f, f.score >= 7.0, 1) == []", finding("9.8"), unknown},
		{"another operand decides", "d.score >= 7.0 || true", finding("9.8"), yes},
		{"no other operand decides", "d.score >= 7.0 || false", finding("9.8"), unknown},
	} {
		s := scopeOf(t, env)
		held, err := compile(t, s, c.expression).Bool(t.Context(), s.NewActivation(cel.Inputs{Variables: map[string]any{"d": c.data}}))
		got := map[bool]string{true: yes, false: no}[held]
		if err != nil {
			got = unknown
		}
		if got != c.want || err != nil && held {
			t.Errorf("%s: %s: %s, %v; want %s", c.reason, c.expression, got, err, c.want)
		}
	}
}
