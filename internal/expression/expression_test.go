package expression_test

import (
	"errors"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/internal/expression"
)

// TestSize: the size is never less than the number of instructions, and little more for usual expressions.
func TestSize(t *testing.T) {
	for _, row := range []struct {
		reason, text string
		least, most  int
	}{
		{"a text", "abc", 3, 10},
		{"an identity", `^https://github\.com/acme/[^/]+/\.github/workflows/(build|release)\.ya?ml@refs/tags/v[0-9]+$`, 80, 160},
		{"a repetition", "a{1000}", 1000, 3500},
		{"an open one", "a{500,}", 500, 2000},
		{"an optional one", "(ab?){0,200}", 400, 2500},
		{"a nested one", "((a{10}){10}){10}", 1000, 5000},
		{"nested groups", strings.Repeat("(", 45) + "a" + strings.Repeat(")", 45), 91, 100},
		{"empty groups", strings.Repeat("()", 45), 135, 200},
		{"alternatives of nothing", `(?:^|$|\b|\B)*`, 9, 15},
		{"loops of what may be empty", "((((a?)*)?)*)*", 15, 30},
		{"many", strings.Repeat("a{1000}", 580), 580_000, 1 << 21},
		{"a class with a large table", `\pL`, 100, 200},
		{"the greatest", strings.Repeat("a{1000}", 2000), 1 << 20, 1 << 20},
	} {
		size, err := expression.Size(row.text)
		if err != nil || size < row.least || size > row.most {
			t.Errorf("%s: size %d, %v; want %d to %d", row.reason, size, err, row.least, row.most)
		}
		if len(row.text) > 100 {
			continue // not compiled, which is why there is a bound
		}
		parsed, err := syntax.Parse(row.text, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(parsed.Simplify())
		if err != nil || len(program.Inst) > size+2 { // the program begins and ends with one
			t.Errorf("%s: size %d, and the program has %d instructions (%v)", row.reason, size, len(program.Inst), err)
		}
	}
	if size, err := expression.Size(strings.Repeat("(", 300) + "a" + strings.Repeat(")", 300)); err != nil || size < 601 {
		t.Errorf("300 groups have a size of %d, %v", size, err)
	}
	for _, text := range []string{"(", "a{1001}", "((a{100}){100}){100}", `\p{None}`} {
		if size, err := expression.Size(text); err == nil {
			t.Errorf("%q has a size of %d, want the parser's error", text, size)
		}
	}
}

// TestSum: the expressions of one policy are bounded each, and together.
func TestSum(t *testing.T) {
	var sum expression.Sum
	for range 15 {
		if err := sum.Add("a{1000}"); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	for range 15 {
		err = errors.Join(err, sum.Add("a{1000}"))
	}
	if err == nil || !strings.Contains(err.Error(), "together") {
		t.Errorf("30 large expressions: %v", err)
	}
	for text, want := range map[string]string{strings.Repeat("a{1000}", 10): "more than the bound of 10000", "(": "missing closing )"} {
		if err := new(expression.Sum).Add(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
