package docs

import (
	"bytes"
	"regexp"
)

// figure is a number with a unit that somebody measured, or a range of them.
var figure = regexp.MustCompile(`\d[\d.,]*(?: to \d[\d.,]*)? (?:bytes|kB|MB|GB|KiB|MiB|GiB|µs|ms|s|seconds|times)\b|\d[\d.,]* %`)

// Figures returns the figures of a page that another one does not have, as mistakes whose
// What is the figure, and how many it looked for.
func Figures(copied, measured *Page) (missing []Mistake, found int) {
	there := map[string]bool{}
	for _, f := range figure.FindAll(measured.source, -1) {
		there[string(f)] = true
	}
	for _, at := range figure.FindAllIndex(copied.source, -1) {
		found++
		if f := string(copied.source[at[0]:at[1]]); !there[f] {
			missing = append(missing, Mistake{copied.Path, 1 + bytes.Count(copied.source[:at[0]], []byte("\n")), f})
		}
	}
	return missing, found
}
