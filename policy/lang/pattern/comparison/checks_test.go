package comparison_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/lang/jmespath"
	"github.com/quaymaster/quaymaster/policy/lang/pattern/comparison"
)

// TestNearlyRanges: what looks like a range, and is text; beside another alternative, for
// the very text of a pattern always holds.
func TestNearlyRanges(t *testing.T) {
	for _, c := range []struct {
		reason, text string
		want         bool // the text holds
	}{
		{"two signs", "--5", true},
		{"no number behind the dash", "1-x", true},
		{"nothing behind the dash", "1-", true},
		{"no number before the dash", "a-b", true},
		{"a unit of something else than letters", "1{-2", true},
		{"a number of something else than digits", "1:2-3", true},
		{"unknown units: a range, of which text is no part", "1a-2b", false},
		{"the last letter is one, too", "1z-2z", false},
		{"a range", "1-2", false},
	} {
		if got := is(t, c.text+" | other", c.text); got != c.want {
			t.Errorf("%s: %s holds itself: %t", c.reason, c.text, got)
		}
		if !is(t, c.text+" | other", "other") || is(t, c.text+" | other", "third") {
			t.Errorf("%s: the other alternative is lost", c.text)
		}
	}
}

// TestNumbersInStrings: a number in a string is the number, and nothing that begins with
// one or is none.
func TestNumbersInStrings(t *testing.T) {
	for _, c := range []struct {
		pattern float64
		value   string
		want    bool
	}{
		{8, "8", true}, {8, "9", false}, {0, "0", true}, {0, "x", false}, {0.5, "0.5", true}, {0.5, "x", false},
		{1e300, "1e300", true}, {1e300, "1e301", false}, {1 << 63, "9223372036854775808", true}, {1 << 63, "9223372036854775807999", false},
	} {
		if got := is(t, c.pattern, c.value); got != c.want {
			t.Errorf("%g with %q: %t", c.pattern, c.value, got)
		}
	}
}

// TestUnitsAlone: Kubernetes parses a unit without a number as zero, so that it may not pass as another amount.
func TestUnitsAlone(t *testing.T) {
	for _, c := range []struct {
		pattern, value string
		doubt, want    bool
	}{
		{"!0", "Ki", true, false}, {"!0", "m", true, false}, {"!0Mi", "e5", true, false}, {"!0", "-", true, false},
		{"!0", "0Ki", false, false}, {"!0", "1Ki", false, true}, {"!0", "Kix", false, true}, {"!0", "", false, true},
		{"!5", "Ki", false, true}, {"!m", "Ki", false, true}, {"0", "Ki", false, false}, {"!0", "e999999999", true, false},
	} {
		if held, err := holds(c.pattern, c.value); held != c.want || (err != nil) != c.doubt {
			t.Errorf("%q with %q: %t, %v", c.pattern, c.value, held, err)
		}
	}
}

// TestLongTexts: a text that is no number is another text, however long; and one that looks
// like a number cannot be judged.
func TestLongTexts(t *testing.T) {
	for text, judged := range map[string]bool{
		strings.Repeat("k", 65): true, "5" + strings.Repeat("x", 65): true, strings.Repeat("5", 65): false, strings.Repeat("5", 65) + "Ki": false,
	} {
		held, err := holds("!5", text)
		if held != judged || (err == nil) != judged {
			t.Errorf("%.10s...: %t, %v", text, held, err)
		}
	}
}

// TestBounds: the largest accepted value and the smallest refused one; without a budget
// nothing holds.
func TestBounds(t *testing.T) {
	for parts, want := range map[int]bool{4096: true, 4097: false} {
		if _, err := comparison.Compile(strings.Repeat("a|", parts-1) + "a"); (err == nil) != want {
			t.Errorf("%d parts: %v", parts, err)
		}
	}
	var b comparison.Budget
	if err := b.Spend(4 << 20); err != nil {
		t.Error(err)
	}
	c, err := comparison.Compile("*")
	if err != nil {
		t.Fatal(err)
	}
	if held, err := c.Holds(&b, "x"); held || !errors.Is(err, jmespath.ErrTooLarge) {
		t.Errorf("beyond the budget: %t, %v", held, err)
	}
}

func TestStar(t *testing.T) {
	for pattern, want := range map[any]bool{"*": true, "**": false, "": false, nil: false} {
		c, err := comparison.Compile(pattern)
		if err != nil {
			t.Fatal(err)
		}
		if c.Star() != want {
			t.Errorf("%v is a star: %t", pattern, !want)
		}
	}
}

// TestBytesThatAreNoText: the bytes of hidden characters come from Literal alone, and neither from
// a pattern nor from a value.
func TestBytesThatAreNoText(t *testing.T) {
	for _, pattern := range []string{"1\xff5", "\xf8", ">\xfa5", "a\xc1"} {
		if _, err := comparison.Compile(pattern); err == nil || !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%q compiles: %v", pattern, err)
		}
	}
	if _, err := comparison.Compile("1-5 ü\uFFFD"); err != nil {
		t.Error(err)
	}
	c, err := comparison.CompileFilled(comparison.Literal("a*"))
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]bool{"a*": true, "a\xf8": false, "a\xf9": false, "ab": false} {
		if held, _ := c.Holds(&comparison.Budget{}, value); held != want {
			t.Errorf("the characters a* hold for %q: %t", value, held)
		}
	}
}
