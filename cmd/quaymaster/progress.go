package main

import (
	"fmt"
)

// progress is a progress line on a terminal.
type progress struct {
	t     terminal
	shown bool
}

// worthShowing is the number of references from which a progress line is shown.
const worthShowing = 3

func newProgress(t terminal) *progress { return &progress{t: t} }

func (p *progress) draw(done, total int) {
	if total >= worthShowing && isTerminal(p.t.err) {
		p.shown = true
		fmt.Fprintf(p.t.err, "\rverified %d of %d images", done, total)
	}
}

func (p *progress) clear() {
	if p.shown {
		fmt.Fprint(p.t.err, "\r\x1b[K")
	}
}
