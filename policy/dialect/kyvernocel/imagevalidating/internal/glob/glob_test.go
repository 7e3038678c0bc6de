package glob_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/policy/dialect/kyvernocel/imagevalidating/internal/glob"
)

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		reason, text string
		want         []string
	}{
		{"two stars are one", "a.example/**", []string{"a.example/*"}},
		{"alternatives, one inside another", "a.example/{b,c{d,e}}", []string{"a.example/b", "a.example/cd", "a.example/ce"}},
		{"an empty alternative", "{,a.example/b}", nil},
		{"a class", "a.example/[b]", nil},
		{"a brace that is not closed", "a.example/{b", nil},
		{"as many alternatives as may be", "a.example/{" + strings.Repeat("b,", 63) + "b}", slices.Repeat([]string{"a.example/b"}, 64)},
		{"one more", "a.example/{" + strings.Repeat("b,", 64) + "b}", nil},
		{"a longer glob than may be", "a.example/" + strings.Repeat("b", 1<<10), nil},
	} {
		got, err := glob.Patterns(c.text, "glob")
		if (err == nil) != (c.want != nil) || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v; want %q", c.reason, got, err, c.want)
		}
	}
}
