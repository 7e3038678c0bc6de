package main

import (
	"fmt"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// progress is a progress line on a terminal.
type progress struct {
	t     command.Terminal
	shown bool
}

// worthShowing is the number of references from which a progress line is shown.
const worthShowing = 3

func newProgress(t command.Terminal) *progress { return &progress{t: t} }

func (p *progress) draw(done, total int) {
	if total >= worthShowing && command.IsTerminal(p.t.Err) {
		p.shown = true
		fmt.Fprintf(p.t.Err, "\rverified %d of %d images", done, total)
	}
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.t.Err, "\r\x1b[K")
	}
}
