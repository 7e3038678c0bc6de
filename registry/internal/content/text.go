package content

import (
	"strings"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// Shorten keeps foreign text in a message readable.
func Shorten(s string) string {
	const most = 200
	return limit.Text(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s), most)
}
