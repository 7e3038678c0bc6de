package decisionlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/quaymaster/quaymaster/report/decisionlog/internal/segment"
)

// Survey is the state of a log file, read before it is continued.
type Survey struct {
	// Lines counts the whole lines, and End is the offset after the last readable one.
	Lines int
	End   int64
	// Position is the position after that line, and Chain the log's name; both are zero without
	// one.
	Position Position
	Chain    string
	// Damaged is the position where the chain is broken before that; empty for an intact chain.
	Damaged string
}

// Look reads a log file from its beginning to its last whole line.
func Look(s Segment) (Survey, error) {
	var found Survey
	opened, err := s.Open()
	if err != nil {
		return found, fmt.Errorf("decision log: %w", err)
	}
	defer func() { _ = opened.Close() }() // opened read-only
	unread := 0                           // the first unreadable line since the last good one
	for {
		raw, err := opened.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, segment.ErrTorn) {
			return found, nil
		}
		if err != nil && !errors.Is(err, segment.ErrLong) {
			return found, fmt.Errorf("decision log: %s: %w", s.Name, err)
		}
		line, unreadable := ParseLine(raw)
		if err != nil || unreadable != nil {
			if unread == 0 {
				unread = opened.Number
			}
			continue
		}
		found.take(&line, opened.Number, unread)
		found.Lines, found.End, unread = opened.Number, opened.Offset(), 0
	}
}

// take adds a readable line.
func (f *Survey) take(l *Line, number, unread int) {
	switch {
	case f.Damaged != "":
	case unread > 0:
		f.Damaged = fmt.Sprintf("line %d cannot be read", unread)
	case f.Lines > 0:
		if err := l.after(f.Position); err != nil {
			f.Damaged = fmt.Sprintf("line %d: %v", number, err)
		}
	}
	if l.Open != nil {
		f.Chain = l.Open.Chain
	}
	f.Position = Position{Seq: l.Seq - 1}.After(l.Raw)
}

// Head returns the number of the last checkpoint, from the copy in the folder; 0 without one.
func Head(folder string) (uint64, error) {
	raw, err := segment.ReadHead(folder)
	if err != nil || raw == nil {
		return 0, err
	}
	line, err := ParseLine(bytes.Clone(raw))
	return line.Seq, err
}
