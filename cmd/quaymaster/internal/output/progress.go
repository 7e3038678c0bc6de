package output

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quaymaster/quaymaster/cmd/quaymaster/internal/command"
)

// Progress is a progress line on a terminal; elsewhere it prints nothing.
type Progress struct {
	out io.Writer // nil: no terminal

	mutex sync.Mutex
	text  string // the last text
	shown bool
}

// NewProgress returns an empty line.
func NewProgress(t command.Terminal) *Progress {
	if !command.IsTerminal(t.Err) {
		return &Progress{}
	}
	return &Progress{out: t.Err}
}

const (
	// worthShowing is the number of images from which a progress line is shown.
	worthShowing = 3
	// worthWaiting is the time from which Wait shows a line: a shorter wait needs none.
	worthWaiting = 2 * time.Second
)

// Wait shows a text, or the last one of Print, with the time that has passed, from two seconds on until
// the returned function is called. That removes the line, and must be called before other output.
func (p *Progress) Wait(text string) (end func()) {
	if p.out == nil {
		return func() {}
	}
	p.mutex.Lock()
	p.text = text
	p.mutex.Unlock()
	began := time.Now()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		timer := time.NewTimer(worthWaiting)
		defer timer.Stop()
		for {
			select {
			case <-stop:
				return
			case <-timer.C:
				p.draw(time.Since(began))
				timer.Reset(time.Second)
			}
		}
	}()
	return sync.OnceFunc(func() {
		close(stop)
		<-stopped
		p.Clear()
	})
}

// Wait shows on the standard error of a terminal what a command waits for: see Progress.Wait.
func Wait(t command.Terminal, text string) (end func()) { return NewProgress(t).Wait(text) }

// Verified prints the number of verified images.
func (p *Progress) Verified(done, total int) {
	if total >= worthShowing {
		p.Print(fmt.Sprintf("verified %d of %d images", done, total))
	}
}

// Print replaces the line.
func (p *Progress) Print(text string) {
	p.mutex.Lock()
	p.text = text
	p.mutex.Unlock()
	p.draw(0)
}

// draw writes the line, with the time where there is one.
func (p *Progress) draw(passed time.Duration) {
	if p.out == nil {
		return
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.shown = true
	line := p.text
	if passed > 0 {
		line += fmt.Sprintf(" (%v)", passed.Round(time.Second))
	}
	fmt.Fprintf(p.out, "\r%s\x1b[K", line)
}

// Clear removes the line.
func (p *Progress) Clear() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.shown {
		p.shown = false
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
