package sink

import (
	"context"
	"io"

	"github.com/quaymaster/quaymaster/report/decisionlog"
)

// Stream is a Receiver that writes lines unchanged.
type Stream struct{ To io.Writer }

// Deliver implements Receiver. A blocked writer delays no other receiver.
func (s Stream) Deliver(_ context.Context, lines []decisionlog.Line) error {
	_, err := s.To.Write(text(lines))
	return err
}

// text joins the lines, each with its line break.
func text(lines []decisionlog.Line) []byte {
	size := 0
	for i := range lines {
		size += len(lines[i].Raw) + 1
	}
	all := make([]byte, 0, size)
	for i := range lines {
		all = append(append(all, lines[i].Raw...), '\n')
	}
	return all
}
