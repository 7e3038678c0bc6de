package output

import (
	"fmt"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// Progress is a progress line on a terminal; elsewhere it prints nothing.
type Progress struct {
	t     command.Terminal
	shown bool
}

// NewProgress returns an empty line.
func NewProgress(t command.Terminal) *Progress { return &Progress{t: t} }

// worthShowing is the number of images from which a progress line is shown.
const worthShowing = 3

// Verified prints the number of verified images.
func (p *Progress) Verified(done, total int) {
	if total >= worthShowing {
		p.Print(fmt.Sprintf("verified %d of %d images", done, total))
	}
}

// Print replaces the line.
func (p *Progress) Print(text string) {
	if command.IsTerminal(p.t.Err) {
		p.shown = true
		fmt.Fprintf(p.t.Err, "\r%s\x1b[K", text)
	}
}

// Clear removes the line.
func (p *Progress) Clear() {
	if p.shown {
		p.shown = false
		fmt.Fprint(p.t.Err, "\r\x1b[K")
	}
}
