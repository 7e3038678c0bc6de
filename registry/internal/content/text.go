package content

import "strings"

// Shorten keeps foreign text in a message readable.
func Shorten(s string) string {
	const most = 200
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
