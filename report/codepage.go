package report

import (
	"strings"

	"github.com/quaymaster/quaymaster/policy"
)

// CodePage returns the address of the documentation of a code, or of all codes for an unknown
// one.
func CodePage(c policy.Code) string {
	const page = "https://github.com/quaymaster/quaymaster/blob/main/docs/reason-codes.md"
	if c == "" || strings.Trim(string(c), "abcdefghijklmnopqrstuvwxyz-") != "" {
		return page
	}
	return page + "#" + string(c)
}
