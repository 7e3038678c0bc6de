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

// wrap breaks cleaned text into lines of at most width columns: at blanks, and inside words that
// are longer than a line at the joints of a name.
func wrap(text string, width int) []string {
	var lines []string
	var line string
	for word := range strings.FieldsSeq(text) {
		if line != "" && columns(line)+1+columns(word) <= width {
			line += " " + word
			continue
		}
		if room := width - columns(line) - 1; line != "" && columns(word) > width && room >= width/2 {
			first := divide(word, room)[0] // it is divided anyway, so it may start in this line
			line, word = line+" "+first, word[len(first):]
		}
		if line != "" {
			lines = append(lines, line)
		}
		pieces := divide(word, width)
		lines = append(lines, pieces[:len(pieces)-1]...)
		line = pieces[len(pieces)-1]
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// divide cuts a word into pieces of at most width columns, at the joints of a name.
func divide(word string, width int) []string {
	var pieces []string
	for columns(word) > width {
		at := joint(word[:cut(word, width)])
		pieces = append(pieces, word[:at])
		word = word[at:]
	}
	return append(pieces, word)
}

// joint returns the position to cut a full line: before an @, else after the last separator, else
// before a dot or a bracket; at its end if its second half has none.
func joint(line string) int {
	half := len(line) / 2
	if i := strings.IndexByte(line[half:], '@'); i >= 0 && half+i > 0 {
		return half + i
	}
	if i := strings.LastIndexAny(line[half:], "/,&?=:;"); i >= 0 {
		return half + i + 1
	}
	if i := strings.LastIndexAny(line[half:], ".["); i >= 0 && half+i > 0 {
		return half + i
	}
	return len(line)
}

// cut returns the number of bytes of word that fill at most width columns; at least one
// character.
func cut(word string, width int) int {
	used := 0
	for i, r := range word {
		used += columns(string(r))
		if used > width && i > 0 {
			return i
		}
	}
	return len(word)
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
