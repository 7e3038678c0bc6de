// Package wildcard matches texts with patterns of `*` and `?`, as in Kyverno's image
// references, names and subjects.
//
// `*` matches any run of characters, also an empty one and also across `/`; `?` exactly
// one character. Nothing else is special, there is no escape, and the whole text must
// match (Kyverno 1.19, "Wildcards").
package wildcard

import (
	"strings"
	"unicode/utf8"
)

// Match reports whether text, all of it, matches pattern. Upper and lower case
// differ. It allocates nothing; without `?` it takes time linear in both
// lengths, and with it at most their product.
func Match(pattern, text string) bool {
	head, rest, starred := strings.Cut(pattern, "*")
	n, ok := matchPrefix(head, text)
	if !ok {
		return false
	}
	text = text[n:]
	if !starred {
		return text == ""
	}
	// Between two stars the leftmost match is always right: it leaves the most text for the
	// rest of the pattern, so there is no backtracking.
	for {
		segment, after, more := strings.Cut(rest, "*")
		if !more {
			return matchSuffix(segment, text)
		}
		end := find(segment, text)
		if end < 0 {
			return false
		}
		text, rest = text[end:], after
	}
}

// Overlap reports whether there is a text that two patterns match. It takes time in the
// product of their lengths.
func Overlap(a, b string) bool {
	x, y := []rune(a), []rune(b)
	// reachable[j] reports whether the rest of x from i and the rest of y from j overlap.
	reachable, below := make([]bool, len(y)+1), make([]bool, len(y)+1)
	for i := len(x); i >= 0; i-- {
		for j := len(y); j >= 0; j-- {
			switch {
			case i == len(x) && j == len(y):
				reachable[j] = true
			case i < len(x) && x[i] == '*':
				reachable[j] = below[j] || j < len(y) && reachable[j+1]
			case j < len(y) && y[j] == '*':
				reachable[j] = reachable[j+1] || i < len(x) && below[j]
			case i == len(x) || j == len(y):
				reachable[j] = false
			default:
				reachable[j] = (x[i] == y[j] || x[i] == '?' || y[j] == '?') && below[j+1]
			}
		}
		reachable, below = below, reachable
	}
	return below[0]
}

// Any reports whether one of the patterns matches text.
func Any(patterns []string, text string) bool {
	for _, pattern := range patterns {
		if Match(pattern, text) {
			return true
		}
	}
	return false
}

// Contains reports whether s has a wildcard, so that it is a pattern rather
// than the text itself.
func Contains(s string) bool { return strings.ContainsAny(s, "*?") }

// matchPrefix matches segment, which has no star, with the start of text and
// returns how many bytes of text it covers.
func matchPrefix(segment, text string) (int, bool) {
	if !strings.Contains(segment, "?") {
		return len(segment), strings.HasPrefix(text, segment)
	}
	covered := 0
	for segment != "" {
		literal, rest, one := strings.Cut(segment, "?")
		if !strings.HasPrefix(text[covered:], literal) {
			return 0, false
		}
		covered += len(literal)
		if !one {
			return covered, true
		}
		_, size := utf8.DecodeRuneInString(text[covered:])
		if size == 0 {
			return 0, false
		}
		covered += size
		segment = rest
	}
	return covered, true
}

// matchSuffix matches segment, which has no star, with the end of text.
func matchSuffix(segment, text string) bool {
	if !strings.Contains(segment, "?") {
		return strings.HasSuffix(text, segment)
	}
	for segment != "" {
		i := strings.LastIndexByte(segment, '?')
		literal := segment[i+1:]
		if !strings.HasSuffix(text, literal) {
			return false
		}
		text = text[:len(text)-len(literal)]
		if i < 0 {
			return true
		}
		_, size := utf8.DecodeLastRuneInString(text)
		if size == 0 {
			return false
		}
		text = text[:len(text)-size]
		segment = segment[:i]
	}
	return true
}

// find returns the end of the leftmost place of segment in text, or -1.
func find(segment, text string) int {
	if !strings.Contains(segment, "?") {
		i := strings.Index(text, segment)
		if i < 0 {
			return -1
		}
		return i + len(segment)
	}
	for i := 0; ; {
		if n, ok := matchPrefix(segment, text[i:]); ok {
			return i + n
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		if size == 0 {
			return -1
		}
		i += size
	}
}
