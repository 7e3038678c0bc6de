package comparison_test

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/pattern/comparison"
)

func decode(tb testing.TB, text string) any {
	tb.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return value
}

func holds(pattern, value any) (bool, error) {
	c, err := comparison.Compile(pattern)
	if err != nil {
		return false, err
	}
	return c.Holds(&comparison.Budget{}, value)
}

func TestHolds(t *testing.T) {
	for _, test := range []struct {
		pattern, value string
		want           bool
		reason         string
	}{
		{`"nginx"`, `"nginx"`, true, "the same text"},
		{`"nginx"`, `"nginx2"`, false, "another text"},
		{`"nginx"`, `"Nginx"`, false, "case matters"},
		{`""`, `""`, true, "nothing is nothing"},
		{`""`, `"x"`, false, "something is not nothing"},
		{`""`, `null`, false, "null is not an empty text"},
		{`"*"`, `"x"`, true, "a star is any text"},
		{`"*"`, `""`, true, "also an empty one"},
		{`"*"`, `null`, false, "but not null"},
		{`"*"`, `{}`, false, "nor an object, without a key before it"},
		{`"?*"`, `"x"`, true, "at least one character"},
		{`"?*"`, `""`, false, "none"},
		{`"?*"`, `null`, false, "not there"},
		{`"?*"`, `0`, true, "a number has a character"},
		{`"?*"`, `false`, true, "so has a boolean"},
		{`"a?c"`, `"abc"`, true, "one character"},
		{`"a?c"`, `"abbc"`, false, "two"},
		{`"*:latest"`, `"ghcr.io/a/b:latest"`, true, "a star crosses slashes"},
		{`"*:latest"`, `"ghcr.io/a/b:latest2"`, false, "the whole text counts"},
		{`" nginx "`, `"nginx"`, true, "space around a comparison does not count"},
		{`" nginx "`, `" nginx"`, false, "space in the value does"},

		{`"!latest"`, `"v1"`, true, "not this text"},
		{`"!latest"`, `"latest"`, false, "this text"},
		{`"! latest"`, `"latest"`, false, "a space after the operator"},
		{`"!*:latest"`, `"a:v1"`, true, "no such text"},
		{`"!*:latest"`, `"a:latest"`, false, "such a text"},
		{`"!latest"`, `null`, false, "nothing is known of null"},
		{`"!latest"`, `{}`, false, "nor of an object"},
		{`"!latest"`, `["v1"]`, false, "a list is no value"},
		{`"!x"`, `"!x"`, true, "the very text of the pattern"},
		{`"!"`, `"!"`, true, "a lone operator is text"},
		{`"!"`, `"x"`, false, "and compares as such"},
		{`"!!x"`, `"!x"`, false, "one operator, then text"},
		{`"!!x"`, `"y"`, true, "any other text"},

		{`"a | b"`, `"b"`, true, "one of two"},
		{`"a | b"`, `"c"`, false, "none of two"},
		{`"a|b"`, `"a"`, true, "without space"},
		{`"a|b"`, `"a|b"`, true, "the very text of the pattern"},
		{`"a|"`, `""`, true, "an empty alternative"},
		{`"a|"`, `"b"`, false, "is not any"},
		{`"!a & !b"`, `"c"`, true, "neither"},
		{`"!a & !b"`, `"b"`, false, "one of them"},
		{`"!a | !b"`, `"a"`, true, "or, not and"},
		{`">1 & <20 | >31 & <33"`, `"10"`, true, "and binds more than or"},
		{`">1 & <20 | >31 & <33"`, `32`, true, "the second pair"},
		{`">1 & <20 | >31 & <33"`, `"21"`, false, "in no pair"},
		{`"192.168.88.1 | 10.100.11.*"`, `"10.100.11.54"`, true, "an address"},
		{`"192.168.88.1 | 10.100.11.*"`, `"10.100.12.54"`, false, "another network"},

		{`">5"`, `6`, true, "a number"},
		{`">5"`, `5`, false, "not greater"},
		{`"> 5"`, `"6"`, true, "a number in a string"},
		{`">5"`, `"five"`, false, "no number"},
		{`">=5"`, `5`, true, "equal is enough"},
		{`">=5"`, `4.999`, false, "just below"},
		{`"<5"`, `4`, true, "less"},
		{`"<5"`, `5`, false, "not less"},
		{`"<=5"`, `5`, true, "equal is enough"},
		{`"<=5"`, `5.001`, false, "just above"},
		{`"<5"`, `null`, true, "null counts as zero"},
		{`">5"`, `null`, false, "null counts as zero"},
		{`">=0"`, `null`, true, "null counts as zero"},
		{`"!5"`, `null`, true, "zero is not five"},
		{`"!0"`, `null`, false, "null counts as zero"},
		{`"0"`, `null`, true, "null counts as zero"},
		{`"<5"`, `true`, false, "a boolean has no order"},
		{`"<5"`, `{}`, false, "nor has an object"},
		{`"!5 & >5"`, `"c"`, false, "nor has text"},
		{`"!5 & <5"`, `"a"`, false, "either way"},
		{`">-5"`, `-4`, true, "a negative operand"},
		{`">-5"`, `-6`, false, "below it"},
		{`"5"`, `5`, true, "a number against a string"},
		{`"5"`, `6`, false, "another number"},
		{`"5"`, `"5.0"`, true, "by their numeric value"},
		{`"5"`, `"5.1"`, false, "worth more"},
		{`"!5"`, `"5.0"`, false, "by their numeric value"},
		{`"1.20"`, `"1.2"`, true, "numbers, also where versions were meant"},
		{`"1.20"`, `"1.2.0"`, false, "which is no number"},
		{`"8*"`, `8080`, true, "the text of a number"},
		{`"8*"`, `9080`, false, "begins otherwise"},
		{`"1.5*"`, `1.5`, true, "in decimal"},
		{`"!1.5*"`, `1.5`, false, "and not as 1.5E+00"},
		{`"1E*"`, `1000000000000000000000`, false, "in decimal"},

		{`"1Gi"`, `"1024Mi"`, true, "the same quantity"},
		{`"1Gi"`, `"1000Mi"`, false, "a little less"},
		{`"<=1Gi"`, `"1024Mi"`, true, "at most"},
		{`"<=1Gi"`, `"1025Mi"`, false, "too much"},
		{`"<1"`, `"500m"`, true, "half a CPU"},
		{`"<1"`, `"1500m"`, false, "more than one"},
		{`">=500m"`, `1`, true, "a number against a quantity"},
		{`">=500m"`, `0.25`, false, "too little"},
		{`"200m"`, `"0.2"`, true, "the same quantity"},
		{`"200m"`, `"0.21"`, false, "more"},
		{`"!1Gi"`, `"1024Mi"`, false, "the same quantity"},
		{`"!1Gi"`, `"1Ti"`, true, "another"},
		{`"1e3"`, `1000`, true, "an exponent"},
		{`"1e3"`, `1001`, false, "one more"},
		{`"<1Gi"`, `"lots"`, false, "no quantity has no order"},
		{`10`, `"10"`, true, "a number against a text that writes it"},
		{`10`, `"1e1"`, false, "a number against a text that writes it with an exponent"},
		{`">1e9"`, `"1e10"`, true, "exponents on both sides"},
		{`">1e9"`, `"1e8"`, false, "a smaller one"},
		{`"<0.0000005"`, `0.0000004`, true, "six digits, so zero"},
		{`">0"`, `0.0000004`, false, "six digits, so zero"},

		{`"<10s"`, `"5s"`, true, "durations"},
		{`"<10s"`, `"1m"`, false, "a longer one"},
		{`"60s"`, `"1m"`, true, "the same duration"},
		{`"60s"`, `"2m"`, false, "another"},
		{`"!60s"`, `"1m"`, false, "the same duration"},
		{`">=1h"`, `"90m"`, true, "minutes before thousandths"},
		{`">=1h"`, `"0"`, false, "zero is a duration"},
		{`"<10s"`, `5`, false, "a number is none"},
		{`"<10s"`, `0`, true, "unless it is zero"},
		{`"<1h"`, `null`, true, "null counts as zero"},

		{`"1-10"`, `1`, true, "the lower end"},
		{`"1-10"`, `10`, true, "the upper end"},
		{`"1-10"`, `11`, false, "above"},
		{`"1-10"`, `0`, false, "below"},
		{`"1-10"`, `"5"`, true, "in a string"},
		{`"1-10"`, `"x"`, false, "no number"},
		{`"1!-10"`, `11`, true, "outside"},
		{`"1!-10"`, `10`, false, "the end is inside"},
		{`"1!-10"`, `0`, true, "below"},
		{`"1!-10"`, `"x"`, false, "no number is outside of nothing"},
		{`"128Mi-512Mi"`, `"256Mi"`, true, "quantities"},
		{`"128Mi-512Mi"`, `"1Gi"`, false, "too much"},
		{`"128Mi!-512Mi"`, `"1Gi"`, true, "outside"},
		{`"128Mi!-512Mi"`, `"256Mi"`, false, "inside"},
		{`"1s-10s"`, `"5s"`, true, "durations"},
		{`"1s-10s"`, `"1m"`, false, "too long"},
		{`"-10-8"`, `-9`, true, "a negative end"},
		{`"-10-8"`, `-11`, false, "below it"},
		{`"-10--8"`, `-9`, true, "two negative ends"},
		{`"-10--8"`, `9`, false, "the sign counts"},
		{`"-10!--8"`, `9`, true, "outside of negative ends"},
		{`"-10!--8"`, `-9`, false, "inside of them"},
		{`"-10-+8"`, `0`, true, "signs on both"},
		{`"-10-+8"`, `9`, false, "above"},
		{`"+0Mi!-+1024Mi"`, `"1025Mi"`, true, "signs and units"},
		{`"+0Mi!-+1024Mi"`, `"1Gi"`, false, "inside"},
		{`"1-10 | 20-30"`, `25`, true, "two ranges"},
		{`"1-10 | 20-30"`, `15`, false, "between them"},
		{`"1-10 & !5"`, `4`, true, "a range but for one"},
		{`"1-10 & !5"`, `5`, false, "that one"},
		{`"2.99998-3"`, `2.99999`, true, "fractions"},
		{`"2.99998-3"`, `2.99997`, false, "just below"},
		{`"2-2"`, `2`, true, "a range of one"},
		{`"2!-2"`, `2`, false, "outside of one"},
		{`"1 - 10"`, `5`, false, "a range has no spaces"},
		{`"5.10.84-1"`, `"5.10.84-1"`, true, "a version with a dash is no range"},
		{`"!5.10.84-1"`, `"5.10.84-1"`, false, "nor after an operator"},
		{`"!5.10.84-1"`, `"5.16.5-arch1-1"`, true, "another version"},
		{`"a-b"`, `"a-b"`, true, "text with a dash"},
		{`"a-b"`, `"a"`, false, "is no range"},
		{`"1.-2"`, `1`, false, "half a number is none"},
		{`"2021-01-01"`, `"2021-01-01"`, true, "a date"},
		{`"2021-01-01"`, `"2021"`, false, "is no range"},

		{`true`, `true`, true, "a boolean"},
		{`true`, `false`, false, "the other"},
		{`true`, `"true"`, false, "a string is none"},
		{`false`, `null`, false, "null is not false"},
		{`"true"`, `true`, true, "the text of a boolean"},
		{`"true"`, `false`, false, "the other"},
		{`"!true"`, `false`, true, "not true"},
		{`"!true"`, `true`, false, "true"},
		{`"false"`, `null`, false, "null has no text"},
		{`8`, `8`, true, "a number"},
		{`8`, `8.5`, false, "another"},
		{`8`, `"8"`, true, "in a string"},
		{`8`, `"8.0"`, false, "which must be whole, as the pattern is"},
		{`8`, `" 8"`, false, "and nothing else"},
		{`8`, `true`, false, "a boolean is none"},
		{`8`, `null`, false, "nor is null"},
		{`0`, `null`, false, "null is not the number zero"},
		{`8.5`, `8.5`, true, "a fraction"},
		{`8.5`, `8.6`, false, "another"},
		{`8.5`, `"8.50"`, true, "in a string"},
		{`8.5`, `"x"`, false, "no number"},
		{`-1`, `"-1"`, true, "a negative number"},
		{`-1`, `1`, false, "the sign counts"},
		{`1e300`, `1e300`, true, "a large number"},
		{`1e300`, `"1e301"`, false, "a larger one"},
		{`null`, `null`, true, "null"},
		{`null`, `""`, true, "an empty text"},
		{`null`, `0`, true, "zero"},
		{`null`, `false`, true, "false"},
		{`null`, `"x"`, false, "a text"},
		{`null`, `1`, false, "a number"},
		{`null`, `true`, false, "true"},
		{`null`, `{}`, false, "an object"},
		{`null`, `[]`, false, "a list"},
		{`"!5"`, `"` + strings.Repeat("x", 65) + `"`, true, "a long text"},
	} {
		if got, err := holds(decode(t, test.pattern), decode(t, test.value)); got != test.want || err != nil && !errors.Is(err, comparison.ErrIndeterminate) {
			t.Errorf("%s with %s: %v %v, want %v: %s", test.pattern, test.value, got, err, test.want, test.reason)
		}
	}
}

// TestOperatorTypes is the matrix: each kind of pattern with each type of value. A ! is a
// comparison that is indeterminate.
func TestOperatorTypes(t *testing.T) {
	values := []string{`null`, `true`, `0`, `5`, `6.5`, `"5"`, `"x"`, `""`, `"5s"`, `"5Gi"`, `[]`, `{}`}
	for _, row := range []struct{ pattern, want, reason string }{
		{`"5"`, "---+-+------", "equal"},
		{`"!5"`, "+++-+-++++--", "not equal"},
		{`">5"`, "-!--+-!!!+!!", "more"},
		{`">=5"`, "-!-+++!!!+!!", "at least"},
		{`"<5"`, "+!+---!!!-!!", "less"},
		{`"<=5"`, "+!++-+!!!-!!", "at most"},
		{`"1-6"`, "-!-+-+!!!-!!", "inside"},
		{`"1!-6"`, "+!+-+-!!!+!!", "outside"},
		{`"<1m"`, "+!+---!!+-!!", "a duration that is a quantity, too"},
		{`"*"`, "-+++++++++--", "any text"},
		{`"?*"`, "-++++++-++--", "any character"},
		{`"!*"`, "------------", "no text"},
		{`null`, "+-+----+----", "null"},
		{`true`, "-+----------", "a boolean"},
		{`5`, "---+-+------", "a number"},
	} {
		got := ""
		for _, value := range values {
			sign := "-"
			if held, err := holds(decode(t, row.pattern), decode(t, value)); errors.Is(err, comparison.ErrIndeterminate) && !held {
				sign = "!"
			} else if held {
				sign = "+"
			}
			got += sign
		}
		if got != row.want {
			t.Errorf("%s: %s, want %s for %s: %s", row.pattern, got, row.want, values, row.reason)
		}
	}
}

// is is for values that can be judged, or are in doubt, and so do not hold.
func is(t *testing.T, pattern, value any) bool {
	t.Helper()
	held, err := holds(pattern, value)
	if err != nil && (held || !errors.Is(err, comparison.ErrIndeterminate)) {
		t.Errorf("%v with %v: %v", pattern, value, err)
	}
	return held
}

func TestUnjudged(t *testing.T) {
	long := strings.Repeat("ab", 50_000)
	for _, test := range []struct {
		pattern, value any
		reason         string
	}{
		{"!5", strings.Repeat("5", 65), "a number beyond any in use"},
		{"<5", strings.Repeat("5", 65), "with any operator"},
		{"!5", "1e999999999", "an exponent beyond any in use"},
		{"<5", 1e300, "a number beyond any in use"},
		{strings.Repeat("?a", 50_000) + "b", long, "an expensive pattern"},
		{strings.Repeat("a|", 5000), "x", "too many alternatives"},
	} {
		if held, err := holds(test.pattern, test.value); held || !errors.Is(err, jmespath.ErrTooLarge) {
			t.Errorf("%.20v with %.20v: %v %v: %s", test.pattern, test.value, held, err, test.reason)
		}
	}
	for _, pattern := range []any{[]any{}, map[string]any{}, 5} {
		if _, err := comparison.Compile(pattern); err == nil {
			t.Errorf("%T compiles", pattern)
		}
	}
	b, spent := &comparison.Budget{}, false
	c, err := comparison.Compile("x")
	if err != nil {
		t.Fatal(err)
	}
	for range 5 << 20 {
		if _, err := c.Holds(b, "x"); err != nil {
			spent = errors.Is(err, jmespath.ErrTooLarge)
			break
		}
	}
	if !spent {
		t.Error("a budget has no end")
	}
}

// TestOpposites: of `x` and `!x`, of `a-b` and `a!-b`, one holds.
func TestOpposites(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 3))
		operands := []string{"x", "x*", "?y", "5", "1Gi", "60s", "true"}
		values := []any{"x", "xy", "", "5.0", "1024Mi", "1m", true, false, 5.0, 1.5, -3.0, 60.0}
		operand, value := operands[random.IntN(len(operands))], values[random.IntN(len(values))]
		if is(t, operand, value) == is(t, "!"+operand, value) {
			t.Errorf("%v with %s and its opposite", value, operand)
		}
		low, n := random.IntN(20)-10, float64(random.IntN(40)-20)
		high := low + random.IntN(10)
		in, out := strconv.Itoa(low)+"-"+strconv.Itoa(high), strconv.Itoa(low)+"!-"+strconv.Itoa(high)
		inside := n >= float64(low) && n <= float64(high)
		if is(t, in, n) != inside || is(t, out, n) == inside {
			t.Errorf("%v in %s and %s", n, in, out)
		}
	}
}

func FuzzHolds(f *testing.F) {
	for _, seed := range []string{"1-5", "-1Mi!-+5Gi", "!a|b&c", ">= 1h", "1e999", "a?*b", "", "|", "0x1", "１-２", "1\xff5"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, of, value string) {
		held, err := holds(of, value)
		if err != nil {
			return
		}
		if of == value && !held {
			t.Errorf("%q is not itself", of)
		}
		if !strings.ContainsAny(of, "*?|&<>!-") && held && of != value && strings.TrimSpace(of) != value {
			// Then both are numbers or durations, and worth the same.
			if !is(t, "<="+of, value) || !is(t, ">="+of, value) {
				t.Errorf("%q is %q", value, of)
			}
		}
	})
}

func BenchmarkHolds(b *testing.B) {
	for _, row := range []struct {
		pattern string
		value   any
	}{
		{"false", false}, {"1Mi-4Gi", "1Gi"}, {">=1h", "90m"}, {"ghcr.io/*:* & !*:latest", "ghcr.io/example/web:1"},
	} {
		c, err := comparison.Compile(row.pattern)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(row.pattern, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if held, err := c.Holds(&comparison.Budget{}, row.value); !held || err != nil {
					b.Fatal(held, err)
				}
			}
		})
	}
}

// TestRoundedIntegers: of an integer of 2^53 or more, only the float64 next to it is left. Another
// integer with the same one decides otherwise, so the comparison is indeterminate there.
func TestRoundedIntegers(t *testing.T) {
	const rounded = 9007199254740994.0 // as is 9007199254740993, in Kubernetes an int64
	for _, c := range []struct {
		reason     string
		pattern    any
		want, fail bool // fail: it is indeterminate
	}{
		{"it may be another integer", ">9007199254740993", false, true},
		{"it may be this one", "!9007199254740993", false, true},
		{"it may be another one than the pattern's", 9007199254740994.0, false, true},
		{"its digits are unknown", "90071992547409?4", false, true},
		{"all candidates are more", ">9007199254740000", true, false},
		{"all candidates are less", "<9007199254741000", true, false},
		{"no candidate is more", ">9007199254741000", false, false},
		{"no candidate is it", 5.0, false, false},
		{"every candidate has a character", "?*", true, false},
		{"no candidate is empty", "!?*", false, false},
		{"no candidate is a word", "!web-*", true, false},
		{"no candidate is one of two words", "web | api", false, false},
		{"every candidate has 16 digits", strings.Repeat("?", 16), true, false},
		{"its first digits are not compared apart from the others", "9*", false, true},
	} {
		held, err := holds(c.pattern, rounded)
		if held != c.want || (err != nil) != c.fail || err != nil && !errors.Is(err, comparison.ErrIndeterminate) {
			t.Errorf("%s: %v holds: %t, %v", c.reason, c.pattern, held, err)
		}
	}
	if held, err := holds(strings.Repeat("?", 17), 1e16); held || !errors.Is(err, comparison.ErrIndeterminate) {
		t.Errorf("a candidate of 1e16 has 16 digits: %t, %v", held, err)
	}
	if held, err := holds(">9007199254740990", 9007199254740991.0); !held || err != nil {
		t.Errorf("the largest exact integer: %t, %v", held, err)
	}
}
