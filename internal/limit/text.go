package limit

import "strings"

// Text cuts a text of an untrusted author for a message: after most bytes, at a whole character.
func Text(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
