package review

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quaymaster/quaymaster/policy"
)

// Page is a denial of several lines, some of which begin with an image.
type Page struct {
	lines []string
	heads []bool
}

// Line adds a line. The lines of depth 1 are heads.
func (p *Page) Line(depth int, format string, args ...any) {
	p.add(depth == 1, strings.Repeat("  ", depth)+fmt.Sprintf(format, args...))
}

func (p *Page) add(isHead bool, line string) {
	p.lines, p.heads = append(p.lines, line), append(p.heads, isHead)
}

// Head returns the last head.
func (p *Page) Head() string {
	for i, isHead := range slices.Backward(p.heads) {
		if isHead {
			return strings.TrimSpace(p.lines[i])
		}
	}
	return ""
}

// Reason adds a reason below a head. The places, of which some may be empty, come before it, and
// the advice after it.
func (p *Page) Reason(r policy.Reason, advice string, places ...string) {
	places = slices.DeleteFunc(places, func(s string) bool { return s == "" })
	text := fmt.Sprintf("%s [%s]", Plain(r.Message, MaxField), r.Code)
	if len(places) > 0 {
		text = strings.Join(places, ", ") + ": " + text
	}
	p.Line(2, "%s", text)
	for _, detail := range []struct{ label, text string }{{"expected", r.Expected}, {"found", r.Found}, {"next", advice}} {
		if detail.text != "" {
			p.Line(3, "%s: %s", detail.label, Plain(detail.text, MaxField))
		}
	}
}

// Bounded joins whole lines up to most bytes, and counts the omitted ones.
func (p *Page) Bounded(most int) string {
	const tail = 40 // for the line with the count
	size, fit := 0, 0
	for fit < len(p.lines) && size+len(p.lines[fit])+1 <= most-tail {
		size += len(p.lines[fit]) + 1
		fit++
	}
	if fit == len(p.lines) {
		return strings.Join(p.lines, "\n")
	}
	images := 0
	for _, head := range p.heads[fit:] {
		if head {
			images++
		}
	}
	last := fmt.Sprintf("  ... and %d more lines", len(p.lines)-fit)
	if images > 0 {
		last = fmt.Sprintf("  ... and %d more images", images)
	}
	return strings.Join(append(slices.Clone(p.lines[:fit]), last), "\n")
}
