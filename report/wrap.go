package report

import (
	"slices"
	"strings"
)

// Bounds of the page: a narrower one cannot hold a label and a value, a wider one is hard to
// read.
const (
	defaultWidth = 80
	minWidth     = 40
	maxWidth     = 120
)

// pageWidth returns the effective width for a requested one.
func pageWidth(asked int) int {
	if asked <= 0 {
		return defaultWidth
	}
	return min(max(asked, minWidth), maxWidth)
}

// wrap breaks cleaned text at blanks into lines of at most width columns. A word that is longer,
// such as a reference or a digest, is never cut, so that it can be copied and searched for.
func wrap(text string, width int) []string {
	var lines []string
	var line string
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case columns(line)+1+columns(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	return append(lines, line)
}

// wrapCommand breaks a shell command at blanks outside of quotes, so that the lines, each but the
// last ending in a backslash, are still that command. A word that is longer than a line stays
// whole.
func wrapCommand(command string, width int) []string {
	var lines []string
	var line string
	for _, word := range shellWords(command) {
		switch {
		case line == "":
			line = word
		case columns(line)+1+columns(word)+2 <= width:
			line += " " + word
		default:
			lines = append(lines, line+` \`)
			line = "  " + word
		}
	}
	return append(lines, line)
}

// shellWords splits at blanks outside of quotes and keeps the quotes.
func shellWords(command string) []string {
	var words []string
	var word strings.Builder
	var quote rune
	escaped := false
	for _, r := range command {
		if r == ' ' && quote == 0 && !escaped {
			words = append(words, word.String())
			word.Reset()
			continue
		}
		switch {
		case escaped:
			escaped = false
		case r == '\\' && quote != '\'':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		}
		word.WriteRune(r)
	}
	words = append(words, word.String())
	return slices.DeleteFunc(words, func(w string) bool { return w == "" })
}
