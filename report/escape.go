package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds on untrusted text in a text or a tree. Omitted text is counted in its place; the JSON
// record has all of it.
const (
	// maxText bounds one value, in characters. The longest useful value is a chain of errors
	// around a URL.
	maxText = 400
	// maxReasons bounds the reasons of one decision without Verbose. Policies with many keys
	// exceed it regularly.
	maxReasons = 4
	// maxLine bounds the first line of a message, in bytes.
	maxLine = 300
)

// clean makes untrusted text safe for one line of a terminal: it escapes the text, collapses runs
// of white space to one blank, and truncates to maxText characters.
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

// Clean makes untrusted text safe for one line of a terminal or a report: it escapes control
// characters, collapses runs of white space to one blank, and truncates to 400 characters.
func Clean(s string) string { return clean(s) }

// FirstLine returns the first line of a text, shortened. It escapes nothing.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if len(line) > maxLine {
		line = strings.ToValidUTF8(line[:maxLine], "") // the bound may be within a character
	}
	return line
}

// Escape makes untrusted text safe for a terminal: it escapes control characters and retains line
// breaks.
func Escape(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "\n")
}

// escape escapes terminal controls, characters that change the order of reading, and bytes that
// are not UTF-8.
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

// isPlain reports whether r has no effect on a terminal but its glyph. That holds for letters,
// marks, numbers, punctuation and symbols. It does not for controls, format characters (direction
// overrides, zero width joiners), separators and private or unassigned characters.
func isPlain(r rune) bool {
	return r == ' ' || unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S)
}

// columns returns the number of terminal columns of s.
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
