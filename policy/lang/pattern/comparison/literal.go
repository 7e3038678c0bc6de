package comparison

import "strings"

// meta are the special characters of a pattern, wildcards first. The value of a variable has a
// byte of hiding in place of each: bytes that no text in UTF-8 has.
const (
	meta        = "*?|&!<>=- "
	hiding      = "\xf8\xf9\xfa\xfb\xfc\xfd\xfe\xff\xc0\xc1"
	hiddenMinus = '\xc0'
)

// Literal returns a text for use in a pattern, with its special characters hidden: it matches only
// itself.
func Literal(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if !strings.ContainsAny(s, meta) {
		return s
	}
	out := []byte(s)
	for i, b := range out {
		if at := strings.IndexByte(meta, b); at >= 0 {
			out[i] = hiding[at]
		}
	}
	return string(out)
}

// reveal returns the original text of a string with hidden characters.
func reveal(s string) string { return revealAll(s, 0) }

// revealAll restores the hidden characters of meta from index from on. The others stay hidden.
func revealAll(s string, from int) string {
	i := 0
	for i < len(s) && s[i] < hiddenMinus || i < len(s) && strings.IndexByte(hiding, s[i]) < 0 {
		i++
	}
	if i == len(s) {
		return s
	}
	out := []byte(s)
	for ; i < len(out); i++ {
		if at := strings.IndexByte(hiding, out[i]); at >= from {
			out[i] = meta[at]
		}
	}
	return string(out)
}

// hide hides the wildcards of a value that is matched with an operand in which some are
// hidden. Bytes of a value that are no UTF-8 are replaced as Literal replaces them, so that none is
// taken for a hidden wildcard.
func (c *comparison) hide(s string) string {
	if !c.hidden {
		return s
	}
	return strings.NewReplacer("*", hiding[0:1], "?", hiding[1:2]).Replace(strings.ToValidUTF8(s, "\uFFFD"))
}
