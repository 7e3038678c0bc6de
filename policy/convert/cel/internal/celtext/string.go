package celtext

import (
	"regexp"
	"strconv"
	"strings"
)

// String writes a string: in single quotes, or with escapes in double ones where it needs any.
func String(s string) string {
	if strings.Contains(s, "'") || strconv.Quote(s) != `"`+s+`"` {
		return strconv.Quote(s)
	}
	return "'" + s + "'"
}

// simple are the names that CEL reads after a dot; others are keys in brackets.
var simple = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reserved words of CEL are no names after a dot.
const reserved = " as break const continue else false for function if import in let loop null package return true var void while "

// IsField reports whether a key can be read after a dot.
func IsField(key string) bool {
	return simple.MatchString(key) && !strings.Contains(reserved, " "+key+" ")
}

// Regexp writes a regular expression: as a raw string where there is a backslash in it.
func Regexp(s string) string {
	if strings.Contains(s, `\`) && !strings.ContainsAny(s, "'\n\r") {
		return "r'" + s + "'"
	}
	return String(s)
}
