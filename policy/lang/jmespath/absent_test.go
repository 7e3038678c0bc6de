package jmespath_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

// TestLeftSides: an error on the left of [] or [?...] is the expression's, and not null.
// Absent members are null, in an object's data alone.
func TestLeftSides(t *testing.T) {
	const failed = "error"
	for _, c := range []struct{ reason, expression, data, object, foreign string }{
		{"texts", "split(a, ',')[]", `{"a": "x,y"}`, `["x","y"]`, `["x","y"]`},
		{"no text", "split(a, ',')[]", `{"a": 5}`, failed, failed},
		{"an absent text", "split(a, ',')[]", `{}`, `null`, failed},
		{"null", "split(a, ',')[]", `{"a": null}`, `null`, failed},
		{"filtered", "split(a, ',')[?@ == 'x']", `{"a": "x,y"}`, `["x"]`, `["x"]`},
		{"no text, filtered", "split(a, ',')[?@ == 'x']", `{"a": 5}`, failed, failed},
		{"no JSON, filtered", "parse_json(a)[?x == 'y']", `{"a": "[{"}`, failed, failed},
		{"JSON, filtered", "parse_json(a)[?x == 'y']", `{"a": "[{\"x\":\"y\"}]"}`, `[{"x":"y"}]`, `[{"x":"y"}]`},
		{"no JSON in one element", "values(d)[].parse_json(@)[].i", `{"d": {"a": "{\"i\":1}", "b": "no"}}`, failed, failed},
		{"JSON in each", "values(d)[].parse_json(@)[].i", `{"d": {"a": "{\"i\":1}", "b": "{\"i\":2}"}}`, `[1,2]`, `[1,2]`},
		{"an element without a field", "l[].to_lower(h)[]", `{"l": [{"h": "A"}, {}]}`, `["a"]`, failed},
		{"an element with another type", "l[].to_lower(h)[]", `{"l": [{"h": "A"}, {"h": 1}]}`, failed, failed},
		{"an element with each", "l[].to_lower(h)[]", `{"l": [{"h": "A"}, {"h": "B"}]}`, `["a","b"]`, `["a","b"]`},
		{"outside of a left side", "l[].to_lower(h)", `{"l": [{"h": "A"}, {}]}`, failed, failed},
		{"behind a left side", "l[][].to_lower(h)", `{"l": [{"h": "A"}, {}]}`, failed, failed},
		{"an optional part", "[values(a), values(b)][]", `{"a": {"k": 1}}`, `[1]`, failed},
		{"both parts", "[values(a), values(b)][]", `{"a": {"k": 1}, "b": {"k": 2}}`, `[1,2]`, `[1,2]`},
		{"a part with another type", "[values(a), values(b)][]", `{"a": {"k": 1}, "b": "x"}`, failed, failed},
		{"an optional part of an object", "values({x: to_lower(a), y: to_upper(b)})[]", `{"a": "K"}`, `["k"]`, failed},
		{"one absent argument hides no other", "values(merge(a, b))[]", `{"a": {"k": 1}}`, failed, failed},
		{"no absent argument", "values(merge(a, b))[]", `{"a": {"k": 1}, "b": {"l": 2}}`, `[1,2]`, `[1,2]`},
		{"absent arguments", "values(merge(a, b))[]", `{}`, `null`, failed},
		{"an alternative for an absent member", "(split(a, ',') || split(b, ','))[]", `{"b": "x"}`, `["x"]`, failed},
		{"an alternative for an error", "(split(a, ',') || split(b, ','))[]", `{"a": 5, "b": "x"}`, failed, failed},
		{"an alternative for the list", "split(a, ',')[] || `[]`", `{"a": 5}`, failed, failed},
		{"an alternative for an absent list", "split(a, ',')[] || `[]`", `{}`, `[]`, failed},
		{"a condition on an absent member", "l[?to_lower(h) != 'x'][]", `{"l": [{}]}`, failed, failed},
		{"a condition on a present member", "l[?to_lower(h) != 'x'][]", `{"l": [{"h": "Y"}]}`, `[{"h":"Y"}]`, `[{"h":"Y"}]`},
		{"a negation of an absent member", "[!contains(h, 'x')][]", `{}`, failed, failed},
		{"a comparison of an absent member", "[to_lower(h) != 'x'][]", `{}`, failed, failed},
		{"a first operand that is absent", "(contains(h, 'x') && l)[]", `{"l": [1]}`, failed, failed},
		{"a second operand that is absent", "(l && split(h, ','))[]", `{"l": [1]}`, `null`, failed},
		{"mapped over an absent member", "map(&to_lower(h), l)[]", `{}`, `null`, failed},
		{"mapped over an element without a field", "map(&to_lower(h), l)[]", `{"l": [{"h": "A"}, {}]}`, `["a"]`, failed},
		{"mapped over an element with another type", "map(&to_lower(h), l)[]", `{"l": [{"h": 1}]}`, failed, failed},
		{"sorted, absent", "sort_by(l, &h)[]", `{}`, `null`, failed},
		{"sorted", "sort_by(l, &h)[].h", `{"l": [{"h": 2}, {"h": 1}]}`, `[1,2]`, `[1,2]`},
		{"sorted, two types", "sort_by(l, &h)[].h", `{"l": [{"h": 2}, {"h": "1"}]}`, failed, failed},
		{"the best of two types", "max_by(l, &h).m[]", `{"l": [{"h": 2}, {"h": "1"}]}`, failed, failed},
		{"the maximum of absent members", "max_by(l, &h).m[]", `{}`, `null`, failed},
		{"a function that takes null", "to_array(a)[]", `{}`, `[]`, `[]`},
		{"a missing field", "a.b.c[]", `{"a": {}}`, `null`, `null`},
		{"a missing field, filtered", "a.b.c[?d == 'x']", `{"a": {}}`, `null`, `null`},
		{"within brackets", "(split(a, ','))[][]", `{"a": 5}`, failed, failed},
		{"in an argument", "length(split(a, ',')[])", `{"a": 5}`, failed, failed},
		{"compared", "split(a, ',')[] == `null`", `{"a": 5}`, failed, failed},
		{"in a condition", "l[?split(a, ',')[]]", `{"l": [{"a": 5}]}`, failed, failed},
		{"in a second condition", "l[?b || split(a, ',')[]]", `{"l": [{"a": 5, "b": true}]}`, `[{"a":5,"b":true}]`, `[{"a":5,"b":true}]`},
		{"projected", "l[*].split(a, ',')[]", `{"l": [{"a": "x"}, {"a": 5}]}`, failed, failed},
		{"of members", "d.*.split(a, ',')[]", `{"d": {"x": {"a": 5}}}`, failed, failed},
		{"members of it", "parse_json(a).*", `{"a": "{"}`, failed, failed},
	} {
		for side, engine := range []*jmespath.Engine{newEngine(t), newEngine(t).Foreign()} {
			want := [...]string{c.object, c.foreign}[side]
			got := "syntax"
			query, err := engine.Compile(c.expression)
			if err == nil {
				var value any
				value, err = query.Search(decode(t, c.data))
				if err == nil {
					got = jmespath.Text(value)
				} else {
					got = failed
				}
			}
			if got != want {
				t.Errorf("%s: %s of %s, foreign %d: %s, %v; want %s", c.reason, c.expression, c.data, side, got, err, want)
			}
		}
	}
}

// TestBoundsOfLeftSides: a bound on the left of [] is an error, one item below it is not,
// and so with a hole.
func TestBoundsOfLeftSides(t *testing.T) {
	query, err := newEngine(t).CompilePieces([]jmespath.Piece{{Text: "split("}, {Hole: true}, {Text: ", ',')[] | length(@)"}})
	if err != nil {
		t.Fatal(err)
	}
	for commas, want := range map[int]error{100: nil, 400_000: jmespath.ErrTooLarge} {
		value, err := query.Search(nil, strings.Repeat(",", commas))
		if !errors.Is(err, want) || want == nil && fmt.Sprint(value) != fmt.Sprint(commas+1) {
			t.Errorf("%d commas: %v, %v; want %v", commas, value, err, want)
		}
	}
	if value, err := query.Search(nil, nil); err == nil {
		t.Errorf("null in a hole: %v", value)
	}
}
