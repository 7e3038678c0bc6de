package limit_test

import (
	"testing"

	"github.com/quaymaster/quaymaster/internal/limit"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		reason, text, want string
		most               int
	}{
		{"a short text", "abc", "abc", 3},
		{"a longer one", "abcd", "abc...", 3},
		{"not within a character", "aé", "a...", 2},
		{"nothing", "", "", 0},
	} {
		if got := limit.Text(c.text, c.most); got != c.want {
			t.Errorf("%s: %q, want %q", c.reason, got, c.want)
		}
	}
}
