package celtext

import (
	"regexp"
	"strings"
)

// Matches writes that a text matches a pattern, in which * is any text and ? any character.
func Matches(pattern, value string) string {
	core := strings.Trim(pattern, "*")
	begins, ends := strings.HasPrefix(pattern, "*"), strings.HasSuffix(pattern, "*")
	switch {
	case pattern == "?*" || pattern == "*?":
		return value + " != ''"
	case !strings.ContainsAny(pattern, "*?"):
		return value + " == " + String(pattern)
	case core == "":
		return value + ".size() >= 0"
	case strings.ContainsAny(core, "*?"):
		expression := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
		return value + ".matches(" + Regexp("^(?s:"+expression+")$") + ")"
	case begins && ends:
		return value + ".contains(" + String(core) + ")"
	case begins:
		return value + ".endsWith(" + String(core) + ")"
	}
	return value + ".startsWith(" + String(core) + ")"
}

// NotMatches writes that a text does not match a pattern.
func NotMatches(pattern, value string) string {
	switch {
	case pattern == "?*" || pattern == "*?":
		return value + " == ''"
	case !strings.ContainsAny(pattern, "*?"):
		return value + " != " + String(pattern)
	case strings.Trim(pattern, "*") == "":
		return value + ".size() < 0"
	}
	return "!" + Matches(pattern, value)
}
