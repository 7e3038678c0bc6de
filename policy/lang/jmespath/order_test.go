package jmespath_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
)

func decode(tb testing.TB, text string) any {
	tb.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return value
}

// TestOrder: what has no order is not dropped silently. Null, which is also a missing
// field, drops an item in an object's data alone, as in Kyverno.
func TestOrder(t *testing.T) {
	const none = "no order"
	for _, c := range []struct{ reason, expression, data, object, foreign string }{
		{"numbers", "length(l[?s >= `7.0`])", `{"l": [{"s": 9.8}, {"s": 1}]}`, `1`, `1`},
		{"no element", "length(l[?s >= `7.0`])", `{"l": []}`, `0`, `0`},
		{"numeric text", "length(l[?s >= `7.0`])", `{"l": [{"s": "9.8"}]}`, none, none},
		{"less than numeric text", "length(l[?s < `7.0`])", `{"l": [{"s": "9.8"}]}`, none, none},
		{"text on the other side", "length(l[?`7.0` <= s])", `{"l": [{"s": "9.8"}]}`, none, none},
		{"text and text", "length(l[?s < t])", `{"l": [{"s": "1.2", "t": "1.10"}]}`, none, none},
		{"a boolean", "length(l[?s > `7.0`])", `{"l": [{"s": true}]}`, none, none},
		{"a list", "length(l[?s > `7.0`])", `{"l": [{"s": [9.8]}]}`, none, none},
		{"an object", "length(l[?s > `7.0`])", `{"l": [{"s": {}}]}`, none, none},
		{"null", "length(l[?s >= `7.0`])", `{"l": [{"s": null}]}`, `0`, none},
		{"a missing field", "length(l[?s >= `7.0`])", `{"l": [{}]}`, `0`, none},
		{"not less than null", "length(l[?!(s < `7.0`)])", `{"l": [{"s": null}]}`, `1`, none},
		{"not less than text", "length(l[?!(s < `7.0`)])", `{"l": [{"s": "9.8"}]}`, none, none},
		{"not less", "length(l[?!(s < `7.0`)])", `{"l": [{"s": 9.8}]}`, `1`, `1`},
		{"null against null", "length(l[?s >= t])", `{"l": [{}]}`, `0`, none},
		{"a text that is a number in a function", "length(l[?to_number(s) >= `7.0`])", `{"l": [{"s": "9.8"}]}`, `1`, `1`},
		{"a text that is none", "length(l[?to_number(s) >= `7.0`])", `{"l": [{"s": "high"}]}`, none, none},
		{"no text at all", "length(l[?to_number(s) >= `7.0`])", `{"l": [{"s": null}]}`, `0`, none},
		{"not a number", "length(l[?to_number(s) >= `7.0`])", `{"l": [{"s": "NaN"}]}`, none, none},
		{"not a number alone", "to_number(s)", `{"s": "NaN"}`, none, none},
		{"not a number, in lower case", "to_number(s)", `{"s": "nan"}`, none, none},
		{"infinity", "to_number(s)", `{"s": "-Inf"}`, none, none},
		{"infinity in full", "to_number(s)", `{"s": "+infinity"}`, none, none},
		{"whether it is a number, of NaN", "to_number(s) == null", `{"s": "NaN"}`, `true`, `true`},
		{"the type of infinity", "type(to_number(s))", `{"s": "Inf"}`, `"null"`, `"null"`},
		{"the type of a number", "type(to_number(s))", `{"s": "1"}`, `"number"`, `"number"`},
		{"the least by a text that is none", "min_by(l, &to_number(s)).s", `{"l": [{"s": "1"}, {"s": "NaN"}]}`, none, none},
		{"the least by a text that is one", "min_by(l, &to_number(s)).s", `{"l": [{"s": "2"}, {"s": "1"}]}`, `"1"`, `"1"`},
		{"the greatest by infinity", "max_by(l, &to_number(s)).s", `{"l": [{"s": "1"}, {"s": "Inf"}]}`, none, none},
		{"sorted by a text that is none", "sort_by(l, &to_number(s))[0].s", `{"l": [{"s": "1"}, {"s": "NaN"}]}`, none, none},
		{"sorted by a text that is one", "sort_by(l, &to_number(s))[0].s", `{"l": [{"s": "2"}, {"s": "1"}]}`, `"1"`, `"1"`},
		{"sorted, a text that is none", "sort(l[].to_number(@))[0]", `{"l": ["1", "NaN"]}`, none, none},
		{"the least, a text that is none", "min(l[].to_number(@))", `{"l": ["1", "-Inf"]}`, none, none},
		{"a sum with a text that is none", "sum(l[].to_number(@))", `{"l": ["1", "Inf"]}`, none, none},
		{"a number of YAML that JSON does not have", "parse_yaml(s).a", `{"s": "a: .nan"}`, "error", "error"},
		{"a number of YAML", "parse_yaml(s).a", `{"s": "a: .5"}`, `0.5`, `0.5`},
		{"an average of none", "avg(l)", `{"l": []}`, none, none},
		{"an average of none in a filter", "length(l[?avg(m) > `5`])", `{"l": [{"m": []}]}`, none, none},
		{"an average of none where another condition decides", "length(l[?avg(m) > `5` || n == 'x'])", `{"l": [{"m": [], "n": "x"}]}`, `1`, `1`},
		{"an average", "avg(l)", `{"l": [1, 2]}`, `1.5`, `1.5`},
		{"an average of numbers that are too large", "avg(l)", `{"l": [1e308, 1e308]}`, none, none},
		{"a sum of numbers that are too large", "sum(l)", `{"l": [1e308, 1e308]}`, none, none},
		{"a sum of large numbers", "sum(l)", `{"l": [1e308, -1e308]}`, `0`, `0`},
		{"a difference that is too large", "subtract(a, b)", `{"a": 1e308, "b": -1e308}`, none, none},
		{"a product that is too large", "multiply(a, b)", `{"a": 1e308, "b": 10}`, none, none},
		{"a product", "multiply(a, b)", `{"a": 2, "b": 10}`, `20`, `20`},
		{"a quotient that is too large", "divide(a, b)", `{"a": 1e308, "b": 1e-10}`, none, none},
		{"a remainder of a product that is too large", "modulo(multiply(a, b), `3`)", `{"a": 1e308, "b": 10}`, none, none},
		{"a number alone", "to_number(s)", `{"s": "200"}`, `200`, `200`},
		{"a text alone", "to_number(s)", `{"s": "200 "}`, none, none},
		{"hexadecimal", "to_number(s)", `{"s": "0x1F"}`, none, none},
		{"too large a number", "to_number(s)", `{"s": "1e999"}`, none, none},
		{"a list alone", "to_number(s)", `{"s": [200]}`, none, none},
		{"null alone", "to_number(s)", `{"s": null}`, `null`, `null`},
		{"a text with a default", "to_number(s) || `0`", `{"s": "200 "}`, none, none},
		{"null with a default", "to_number(s) || `0`", `{"s": null}`, `0`, `0`},
		{"a text among numbers", "max(l[].to_number(@))", `{"l": ["1", "200 "]}`, none, none},
		{"numbers", "max(l[].to_number(@))", `{"l": ["1", "200"]}`, `200`, `200`},
		{"a text in a pipe", "s | to_number(@)", `{"s": "200 "}`, none, none},
		{"a text in a condition", "length(l[?to_number(s)])", `{"l": [{"s": "x"}]}`, none, none},
		{"a text where another condition decides", "length(l[?to_number(s) == `1` || n == 'x'])", `{"l": [{"s": "x", "n": "x"}]}`, `1`, `1`},
		{"whether it is a number", "to_number(s) == null", `{"s": "x"}`, `true`, `true`},
		{"the type of the number", "type(to_number(s))", `{"s": "x"}`, `"null"`, `"null"`},
		{"a length", "length(l[?length(s) > `1`])", `{"l": [{"s": "ab"}]}`, `1`, `1`},

		{"another condition is false", "length(l[?n == 'x' && s >= `7.0`])", `{"l": [{"n": "y", "s": "9.8"}]}`, `0`, `0`},
		{"it is false behind it", "length(l[?s >= `7.0` && n == 'x'])", `{"l": [{"n": "y", "s": "9.8"}]}`, `0`, `0`},
		{"it is true behind it", "length(l[?s >= `7.0` && n == 'x'])", `{"l": [{"n": "x", "s": "9.8"}]}`, none, none},
		{"an alternative is true", "length(l[?s >= `7.0` || n == 'x'])", `{"l": [{"n": "x", "s": "9.8"}]}`, `1`, `1`},
		{"it is false", "length(l[?s >= `7.0` || n == 'x'])", `{"l": [{"n": "y", "s": "9.8"}]}`, none, none},
		{"neither alternative has an order", "length(l[?s >= `7.0` || s < `1`])", `{"l": [{"s": "9.8"}]}`, none, none},
		{"denied, an alternative is true", "length(l[?!(s >= `7.0` || n == 'x')])", `{"l": [{"n": "x", "s": "9.8"}]}`, `0`, `0`},
		{"denied, it is false", "length(l[?!(s >= `7.0` || n == 'x')])", `{"l": [{"n": "y", "s": "9.8"}]}`, none, none},
		{"nested", "length(l[?(s >= `7.0` || t >= `7.0`) && n == 'x'])", `{"l": [{"n": "y", "s": "9.8"}]}`, `0`, `0`},
		{"a value is no condition", "length(l[?s >= `7.0`] || `[]`)", `{"l": [{"s": "9.8"}]}`, none, none},
		{"in a filter of a filter", "length(l[?s >= `7.0`][?n == 'x'])", `{"l": [{"s": "9.8"}]}`, none, none},
		{"flattened", "length(l[?s >= `7.0`].m[])", `{"l": [{"s": "9.8"}]}`, none, none},
		{"in a filter within", "length(l[?m[?s >= `7.0`]])", `{"l": [{"m": [{"s": "9.8"}]}]}`, none, none},
		{"mapped", "length(map(&(s >= `7.0`), l))", `{"l": [{"s": "9.8"}]}`, none, none},
		{"alone", "s >= `7.0`", `{"s": "9.8"}`, none, none},
		{"alone, and null", "s >= `7.0`", `{"s": null}`, `null`, none},

		{"the greatest number", "max(l)", `{"l": [9.8, 10.0]}`, `10`, `10`},
		{"the greatest of numeric texts", "max(l)", `{"l": ["9.8", "10.0"]}`, `"9.8"`, none},
		{"of texts in the order of their numbers", "max(l)", `{"l": ["1.5", "9.8"]}`, `"9.8"`, `"9.8"`},
		{"of words", "max(l)", `{"l": ["b", "a"]}`, `"b"`, `"b"`},
		{"of a number and a word", "max(l)", `{"l": ["9.8", "unknown"]}`, `"unknown"`, none},
		{"of versions", "max_by(l, &v).v", `{"l": [{"v": "2.9.0"}, {"v": "2.17.0"}]}`, `"2.9.0"`, none},
		{"of versions in their order", "max_by(l, &v).v", `{"l": [{"v": "2.8.0"}, {"v": "2.9.0"}]}`, `"2.9.0"`, `"2.9.0"`},
		{"the least of durations", "min_by(l, &v).v", `{"l": [{"v": "9m"}, {"v": "1h"}]}`, `"1h"`, none},
		{"of times in one zone", "max_by(l, &v).v", `{"l": [{"v": "2026-01-01T00:00:00Z"}, {"v": "2026-02-01T00:00:00Z"}]}`, `"2026-02-01T00:00:00Z"`, `"2026-02-01T00:00:00Z"`},
		{"of times in two zones", "max_by(l, &v).v", `{"l": [{"v": "2026-01-01T01:00:00+02:00"}, {"v": "2026-01-01T00:30:00Z"}]}`, `"2026-01-01T01:00:00+02:00"`, none},
		{"sorted numeric texts", "sort(l)[0]", `{"l": ["9.8", "10.0"]}`, `"10.0"`, none},
		{"sorted by numeric texts", "sort_by(l, &v)[0].v", `{"l": [{"v": "9.8"}, {"v": "10.0"}]}`, `"10.0"`, none},
		{"by null and a number", "max_by(l, &v)", `{"l": [{"v": null}, {"v": 1}]}`, "error", "error"},

		{"versions", "length(l[?semver_compare(v, '<2.17.0')])", `{"l": [{"v": "2.14.0"}]}`, `1`, `1`},
		{"no version", "length(l[?semver_compare(v, '<2.17.0')])", `{"l": [{"v": "latest"}]}`, "error", "error"},
		{"a missing version", "length(l[?semver_compare(v, '<2.17.0')])", `{"l": [{}]}`, "error", "error"},
		{"a missing time", "length(l[?time_before(v, '2026-01-01T00:00:00Z')])", `{"l": [{}]}`, "error", "error"},
		{"no time", "length(l[?time_after(v, '2026-01-01T00:00:00Z')])", `{"l": [{"v": "yesterday"}]}`, "error", "error"},
		{"a comparison of null", "length(l[?compare(v, 'a') == `1`])", `{"l": [{"v": null}]}`, "error", "error"},
	} {
		for want, engine := range map[string]*jmespath.Engine{c.object: newEngine(t), c.foreign: newEngine(t).Foreign()} {
			if c.object == c.foreign {
				want = c.foreign
			}
			query, err := engine.Compile(c.expression)
			if err != nil {
				t.Fatalf("%s: %v", c.reason, err)
			}
			value, err := query.Search(decode(t, c.data))
			got := "error"
			if errors.Is(err, jmespath.ErrNoOrder) {
				got = none
			} else if err == nil {
				got = jmespath.Text(value)
				if text, ok := value.(string); ok {
					got = `"` + text + `"`
				}
			}
			if got != want {
				t.Errorf("%s: %s of %s: %s, %v; want %s", c.reason, c.expression, c.data, got, err, want)
			}
		}
	}
}

// TestOrderOfLiterals: a literal that can never compare is refused, and one that can is not.
func TestOrderOfLiterals(t *testing.T) {
	for expression, ok := range map[string]bool{
		"l[?s >= '7.0']": false, "l[?'7.0' < s]": false, "l[?s > `\"7\"`]": false, "l[?s < `null`]": false, "l[?s < `true`]": false,
		"l[?s >= `7.0`]": true, "l[?s == '7.0']": true, "l[?s >= t]": true, "l[?length(s) > `0`]": true, "s > '7' || t": false, "!(s > '7')": false,
	} {
		if _, err := newEngine(t).Compile(expression); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "has no order") {
			t.Errorf("%s: %v", expression, err)
		}
	}
}

// TestOrderOfHoles: the value of a hole is compared by its own type.
func TestOrderOfHoles(t *testing.T) {
	query, err := newEngine(t).CompilePieces([]jmespath.Piece{{Text: "length(l[?(s >= "}, {Hole: true}, {Text: " || n == "}, {Hole: true}, {Text: ") && n != 'z'])"}})
	if err != nil {
		t.Fatal(err)
	}
	data := decode(t, `{"l": [{"s": 9, "n": "x"}]}`)
	for _, c := range []struct {
		bound any
		name  string
		want  string
	}{{7.0, "y", "1"}, {10.0, "y", "0"}, {10.0, "x", "1"}, {"7", "x", "1"}, {"7", "y", ""}} {
		value, err := query.Search(data, c.bound, c.name)
		if c.want == "" && !errors.Is(err, jmespath.ErrNoOrder) || c.want != "" && (err != nil || jmespath.Text(value) != c.want) {
			t.Errorf("%v, %s: %v, %v; want %s", c.bound, c.name, value, err, c.want)
		}
	}
}

// TestForeignNames: the members that a query reads decide, by whatever way it reads them.
func TestForeignNames(t *testing.T) {
	engine := newEngine(t).Foreign("config")
	for expression, want := range map[string]bool{
		"config.a > `1`": true, "request.a > `1`": false, "request.a > config.a": true, "@.config.a > `1`": true, "keys(@)": true,
		"request | a": false, "[request, config][0].a > `1`": true, "request.config": false,
	} {
		query, err := engine.Compile(expression)
		if err != nil {
			t.Fatal(err)
		}
		if query.Foreign() != want {
			t.Errorf("%s: foreign %t", expression, !want)
		}
	}
	if query, err := newEngine(t).Compile("config.a > `1`"); err != nil || query.Foreign() || !query.OnForeign().Foreign() {
		t.Errorf("%v", err)
	}
}
