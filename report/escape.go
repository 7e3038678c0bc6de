package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on foreign text in a text or a tree. What was left out is counted where
// it stood; the JSON record has all of it.
const (
	// maxText bounds one value, in characters. The longest that is useful is a
	// chain of errors around a URL.
	maxText = 400
	// maxReasons bounds the reasons shown for one decision without Verbose. More
	// are the rule for policies that list many keys.
	maxReasons = 4
)

// clean makes foreign text safe for one line of a terminal: it is escaped, runs
// of white space are one blank, and at most maxText characters are kept.
func clean(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	kept := 0
	for i := range s {
		if kept == maxText {
			return fmt.Sprintf("%s... (%d more characters)", escape(s[:i]), utf8.RuneCountInString(s[i:]))
		}
		kept++
	}
	return escape(s)
}

// Clean makes foreign text safe for one line, of a terminal or of a report: what a
// terminal acts on is escaped, runs of white space are one blank, and at most 400
// characters are kept.
func Clean(s string) string { return clean(s) }

// Escape makes foreign text safe for a terminal: what one acts on is escaped, and line
// breaks stay.
func Escape(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "\n")
}

// escape writes what a terminal acts on, what changes the order of reading, and
// bytes that are no UTF-8 as escapes.
func escape(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case isPlain(r):
			b.WriteRune(r)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		s = s[size:]
	}
	return b.String()
}

// isPlain reports whether a terminal only shows r. Letters, marks, numbers,
// punctuation and symbols do; controls, format characters (direction overrides,
// zero width joiners), separators and private or unassigned ones do not.
func isPlain(r rune) bool {
	return r == ' ' || unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}

// columns returns how many columns of a terminal s takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Mn, unicode.Me):
		case isWide(r):
			n += 2
		default:
			n++
		}
	}
	return n
}

// isWide covers the scripts that take two columns, and full-width forms.
func isWide(r rune) bool {
	return r >= 0x1100 && (unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) ||
		r >= 0xff01 && r <= 0xff60 || r >= 0x1f300 && r <= 0x1faff)
}
