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
	list := func(elements ...any) map[string]any { return map[string]any{"l": elements} }
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
		{"the greatest of numbers", "d.l.max() <= 1024", list(80, 443), yes},
		{"the greatest of numbers and text", "d.l.max() <= 1024", list(80, "65000"), unknown},
		{"the greatest, denied", "!(d.l.max() > 1024)", list(80, "65000"), unknown},
		{"the greatest of text and numbers", "d.l.max() <= 1024", list("65000", 80), unknown},
		{"the greatest of texts", "d.l.max() <= '7'", list("80", "65000"), no},
		{"the greatest with null", "d.l.max() <= 1024", list(80, nil), unknown},
		{"the greatest with a boolean", "d.l.max() <= 1024", list(80, true), unknown},
		{"the greatest with a list", "d.l.max() <= 1024", list(80, []any{65000}), unknown},
		{"the greatest with a map", "d.l.max() <= 1024", list(80, map[string]any{}), unknown},
		{"the greatest of one that has no order", "d.l.max() == {}", list(map[string]any{}), unknown},
		{"the greatest of none", "d.l.max() <= 1024", list(), unknown},
		{"the greatest of integers and fractions", "d.l.max() == 80.5", list(80, 80.5), yes},
		{"the greatest with NaN", "d.l.map(s, double(s)).max() <= 1024.0", list("80", "NaN"), unknown},
		{"the greatest without NaN", "d.l.map(s, double(s)).max() <= 1024.0", list("80", "443"), yes},
		{"the greatest with NaN first", "d.l.map(s, double(s)).max() <= 1024.0", list("NaN", "80"), unknown},
		{"the greatest of NaN alone", "d.l.map(s, double(s)).max() <= 1024.0", list("NaN"), unknown},
		{"the greatest of decoded JSON", "json.unmarshal(d.l[0]).max() <= 1024", list("[80, 443]"), yes},
		{"the greatest of decoded JSON and text", "json.unmarshal(d.l[0]).max() <= 1024", list(`[80, "65000"]`), unknown},
		{"the greatest of a map", "d.max() <= 'z'", list(1), unknown},
		{"the least of numbers", "d.l.min() >= 1024", list(8080, 8443), yes},
		{"the least of numbers and text", "d.l.min() >= 1024", list(8080, "80"), unknown},
		{"the least with NaN", "d.l.map(s, double(s)).min() >= 1024.0", list("8080", "NaN"), unknown},
		{"the least of none", "d.l.min() >= 1024", list(), unknown},
		{"sorted", "d.l.isSorted()", list(1, 2, 2), yes},
		{"not sorted", "d.l.isSorted()", list(1, 3, 2), no},
		{"sorted with text", "d.l.isSorted()", list(1, 2, "1"), unknown},
		{"sorted with text, denied", "!d.l.isSorted()", list(1, 2, "1"), unknown},
		{"other neighbours decide", "d.l.isSorted()", list("1", 3, 2), no},
		{"none is sorted", "d.l.isSorted()", list(), yes},
		{"sorted with NaN", "d.l.map(s, double(s)).isSorted()", list("1", "NaN"), unknown},
		{"sorted without NaN", "d.l.map(s, double(s)).isSorted()", list("1", "2"), yes},
		{"math.greatest of numbers", "math.greatest(d.l) <= 1024", list(80, 443), yes},
		{"math.greatest with text", "math.greatest(d.l) <= 1024", list(80, "65000"), unknown},
		{"math.greatest with NaN", "math.greatest(d.l.map(s, double(s))) <= 1024.0", list("80", "NaN", "1"), unknown},
		{"math.greatest of two", "math.greatest(d.l[0], d.l[1]) <= 1024", list(80, "65000"), unknown},
		{"math.least of numbers", "math.least(d.l) >= 1024", list(8080, 8443), yes},
		{"math.least with text", "math.least(d.l) >= 1024", list(8080, "80"), unknown},
		{"math.least with NaN", "math.least(d.l.map(s, double(s))) >= 1024.0", list("8080", "NaN", "8081"), unknown},
		{"the last in order", "d.l.sort()[1] <= 1024", list(80, 443), yes},
		{"the last in order with text", "d.l.sort()[1] <= 1024", list(80, "65000"), unknown},
		{"the last in order with NaN", "d.l.map(s, double(s)).sort()[1] <= 1024.0", list("80", "NaN"), unknown},
		{"the last in order without NaN", "d.l.map(s, double(s)).sort()[1] <= 1024.0", list("80", "443"), yes},
		{"ordered by numbers", "d.l.sortBy(f, f)[1] <= 1024", list(80, 443), yes},
		{"ordered by text", "d.l.sortBy(f, f)[1] <= 1024", list(80, "65000"), unknown},
		{"ordered by NaN", "d.l.sortBy(s, double(s))[1] == '80'", list("80", "NaN"), unknown},
		{"ordered by fractions", "d.l.sortBy(s, double(s))[1] == '80'", list("80", "8"), yes},
		{"a sum", "d.l.sum() <= 1024", list(80, 443), yes},
		{"a sum with text", "d.l.sum() <= 1024", list(80, "65000"), unknown},
		{"NaN is not less, as in CEL's specification", "double(d.l[0]) < 1.0", list("NaN"), no},
		{"NaN is not greater", "double(d.l[0]) >= 1.0", list("NaN"), no},
		{"an integer is not less than NaN", "d.l[1] < double(d.l[0])", list("NaN", 1), no},
		{"an integer and a fraction", "d.l[1] < double(d.l[0])", list("2.5", 1), yes},
		{"NaN as a quantity", "quantity(d.l[0]).isLessThan(quantity('1'))", list("NaN"), unknown},
		{"a quantity", "quantity(d.l[0]).isLessThan(quantity('1'))", list("500m"), yes},
		{"a quantity and text", "quantity(d.l[0]).isLessThan(d.l[0])", list("500m"), unknown},
		{"a version and text", "semver(d.l[0]).compareTo(d.l[0]) < 1", list("1.0.0"), unknown},
		{"a version", "semver(d.l[0]).compareTo(semver('2.0.0')) < 0", list("1.0.0"), yes},
		{"all of two variables", "d.l.all(i, v, v <= 1024)", list(80, "65000"), unknown},
		{"all of two variables, decided", "d.l.all(i, v, v <= 1024)", list(65000, "80"), no},
		{"one of two variables", "d.l.exists(i, v, v > 1024)", list(80, "65000"), unknown},
		{"one of two variables alone", "d.l.existsOne(i, v, v <= 1024)", list(80, "65000"), unknown},
		{"made of two variables", "d.l.transformList(i, v, v > 1024, v) == []", list(80, "65000"), unknown},
		{"made of two variables of numbers", "d.l.transformList(i, v, v > 1024, v) == []", list(80, 443), yes},
		{"a place is one of an equal element", "d.l.indexOf(80) == -1", list("80"), yes},
		{"sets have equal elements", "sets.contains(d.l, [80])", list("80"), no},
		{"distinct elements are not equal", "size(d.l.distinct()) == 2", list(80, "80"), yes},
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
