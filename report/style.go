package report

import (
	"strings"

	"github.com/quaymaster/quaymaster/gate"
)

// colour is the code of an ANSI rendition; plain writes none.
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	dim    colour = "2"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

// page builds text with optional colours and a width.
type page struct {
	strings.Builder
	coloured bool
	width    int
}

func (p *page) paint(c colour, text string) string {
	if !p.coloured || c == plain || strings.TrimSpace(text) == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// line writes one line without trailing blanks. It escapes text that a CI system would execute as
// a command: GitHub's runner executes lines that begin with ::, and ##[ anywhere.
func (p *page) line(text string) {
	text = strings.ReplaceAll(strings.TrimRight(text, " "), "##[", `#\x23[`)
	if rest := strings.TrimLeft(text, " "); strings.HasPrefix(rest, "::") {
		text = text[:len(text)-len(rest)] + `\x3a` + rest[1:]
	}
	p.WriteString(text)
	p.WriteByte('\n')
}

// mark returns the sign and the colour of a result. The sign alone is sufficient, since not
// every terminal has colours.
func mark(r gate.Result) (string, colour) {
	switch r {
	case gate.Allow:
		return "✓", green
	case gate.Unchecked:
		return "-", dim
	case gate.Deny:
		return "✗", red
	default:
		return "?", yellow
	}
}

// pad fills text with blanks up to width columns.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-columns(text)))
}
