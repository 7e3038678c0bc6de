package docs

import (
	"bytes"
	"regexp"
)

// figure is a measured number with a unit, or a range of them.
var figure = regexp.MustCompile(`\d[\d.,]*(?: to \d[\d.,]*)? (?:bytes|kB|MB|GB|KiB|MiB|GiB|µs|ms|s|seconds|times)\b|\d[\d.,]* %`)

// Figures returns the figures of a page that another one does not have, as mistakes with the
// figure as What, and the number of figures that it compared.
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
