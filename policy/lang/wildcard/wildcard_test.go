package wildcard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/policy/lang/wildcard"
)

func TestMatch(t *testing.T) {
	tests := []struct {
		pattern, text string
		want          bool
		reason        string
	}{
		{"", "", true, "nothing matches nothing"},
		{"", "a", false, "the whole text must match"},
		{"nginx", "nginx", true, "a plain text matches itself"},
		{"nginx", "nginx2", false, "a prefix is not enough"},
		{"nginx", "Nginx", false, "case matters"},
		{"*", "", true, "a star may be empty"},
		{"*", "ghcr.io/org/app:v1", true, "a star crosses slashes and colons"},
		{"ghcr.io/org/*", "ghcr.io/org/team/app:v1", true, "a star crosses slashes"},
		{"ghcr.io/org/*", "ghcr.io/other/app:v1", false, "the part before the star is literal"},
		{"ghcr.io/org/*", "evil.io/ghcr.io/org/app", false, "the start is anchored"},
		{"*:v1", "ghcr.io/org/app:v1", true, "the end is anchored"},
		{"*:v1", "ghcr.io/org/app:v10", false, "nothing may follow"},
		{"a*b*c", "a-x-b-y-c", true, "several stars"},
		{"a*b*c", "a-x-c-y-b", false, "order matters"},
		{"a**b", "ab", true, "two stars are one"},
		{"*aab", "aaaaab", true, "the last segment ends the text"},
		{"ab*ba", "aba", false, "head and tail must not overlap"},
		{"?", "", false, "a question mark is one character"},
		{"?", "a", true, "any one"},
		{"?", "ab", false, "and no more"},
		{"?*", "", false, "at least one"},
		{"?*", "abc", true, "at least one"},
		{"v?.?", "v1.2", true, "single characters"},
		{"v?.?", "v1.22", false, "one too many"},
		{"*?.x", "ab.x", true, "question mark in the tail"},
		{"a*b?d*e", "a--bcd--e", true, "question mark in the middle"},
		{"a*b?d*e", "a--bccd--e", false, "one character between b and d"},
		{"a*b?d*e", "a--xbccd--e", false, "nor elsewhere"},
		{"*b*", "a", false, "what stands between two stars must be there"},
		{"a*b*c", "axc", false, "and so between a head and a tail"},
		{"*?", "", false, "a question mark in the tail is one character, too"},
		{"*?", "a", true, "any one"},
		{"*?x", "x", false, "and one before what follows it"},
		{"*?x", "ax", true, "which may be any"},
		{"*a?x", "ax", false, "and one between"},
		{"a*?", "a", false, "and none that the head has taken"},
		{"?", "ü", true, "a character may take several bytes"},
		{"*?", "ü", true, "and so in the tail"},
		{"a.b", "axb", false, "a dot is a dot"},
		{"[a-z]", "q", false, "brackets are not special"},
		{`\*`, `\x`, true, "there is no escape"},
	}
	for _, test := range tests {
		if got := wildcard.Match(test.pattern, test.text); got != test.want {
			t.Errorf("Match(%q, %q) = %v: %s", test.pattern, test.text, got, test.reason)
		}
	}
}

func TestAny(t *testing.T) {
	patterns := []string{"docker.io/*", "ghcr.io/org/*"}
	if !wildcard.Any(patterns, "ghcr.io/org/app") {
		t.Error("the second pattern matches")
	}
	if wildcard.Any(patterns, "quay.io/org/app") {
		t.Error("no pattern matches")
	}
	if wildcard.Any(nil, "") {
		t.Error("no pattern matches nothing")
	}
}

func TestContains(t *testing.T) {
	for s, want := range map[string]bool{"a": false, "": false, "a*": true, "?": true} {
		if got := wildcard.Contains(s); got != want {
			t.Errorf("Contains(%q) = %v", s, got)
		}
	}
}

// A pattern that makes backtracking matchers take exponential time.
func TestMatchIsNotExponential(t *testing.T) {
	pattern := strings.Repeat("*a", 200) + "*b"
	text := strings.Repeat("a", 20_000)
	start := time.Now()
	if wildcard.Match(pattern, text) {
		t.Error("there is no b in the text")
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

// reference returns a match, in the plainest way and slowly.
func reference(pattern, text []rune) bool {
	if len(pattern) == 0 {
		return len(text) == 0
	}
	if pattern[0] == '*' {
		return reference(pattern[1:], text) || len(text) > 0 && reference(pattern, text[1:])
	}
	return len(text) > 0 && (pattern[0] == '?' || pattern[0] == text[0]) && reference(pattern[1:], text[1:])
}

func FuzzMatch(f *testing.F) {
	f.Add("a*b?c*", "a--bxc")
	f.Add("*?*?*", "ab")
	f.Add("ü*?", "üö")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		pattern, text = strings.ToValidUTF8(pattern, "_"), strings.ToValidUTF8(text, "_")
		if len(pattern) > 12 || len(text) > 16 {
			wildcard.Match(pattern, text) // must end, and not panic
			return
		}
		if got, want := wildcard.Match(pattern, text), reference([]rune(pattern), []rune(text)); got != want {
			t.Errorf("Match(%q, %q) = %v, want %v", pattern, text, got, want)
		}
	})
}

func BenchmarkMatch(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		wildcard.Match("ghcr.io/*/app:*", "ghcr.io/organisation/team/app:v1.2.3")
	}
}

func ExampleMatch() {
	fmt.Println(wildcard.Match("ghcr.io/org/*:v?", "ghcr.io/org/app:v2"))
	fmt.Println(wildcard.Match("ghcr.io/org/*:v?", "ghcr.io/org/app:v10"))
	// Output:
	// true
	// false
}
