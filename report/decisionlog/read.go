package decisionlog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"

	"github.com/quaymaster/quaymaster/report/decisionlog/internal/segment"
)

// Read returns the lines of a log from a number on, the oldest first. If the log begins later, it
// returns the whole log. It does not check the chain (Verify does). It stops after an error.
func Read(folder string, from uint64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		tail := NewTail(folder, from)
		defer func() { _ = tail.Close() }() // opened read-only
		for {
			line, ok, err := tail.Next()
			if err != nil {
				yield(line, err)
				return
			}
			if !ok || !yield(line, nil) {
				return
			}
		}
	}
}

// Tail reads a log while it is written. It is not safe for concurrent use.
type Tail struct {
	folder string
	from   uint64
	now    *segment.Reader
	done   uint64 // the first line of the last file that was read to its end
}

// NewTail returns a Tail that starts at a line. It opens no file yet.
func NewTail(folder string, from uint64) *Tail { return &Tail{folder: folder, from: from} }

// Close closes the open file.
func (t *Tail) Close() error {
	if t.now == nil {
		return nil
	}
	err := t.now.Close()
	t.now = nil
	return err
}

// Refresh discards lines that were read ahead, so that Next returns the current content of the
// file. The writer may have truncated an incomplete write.
func (t *Tail) Refresh() error {
	if t.now == nil {
		return nil
	}
	return t.now.Again()
}

// Next returns the next line, and false if there is none yet. An invalid line is a *BrokenError
// with its position.
func (t *Tail) Next() (Line, bool, error) {
	for {
		if t.now == nil {
			if found, err := t.advance(); err != nil || !found {
				return Line{}, false, err
			}
		}
		raw, err := t.now.Next()
		if errors.Is(err, io.EOF) || errors.Is(err, segment.ErrTorn) {
			if more, err := t.end(err); err != nil || !more {
				return Line{}, false, err
			}
			continue
		}
		if err != nil {
			return Line{}, false, t.broken(err, t.now.Place(err))
		}
		line, err := ParseLine(raw)
		if err != nil {
			return Line{}, false, t.broken(err, t.now.Number)
		}
		if line.Seq < t.from {
			continue
		}
		line.Raw, line.Segment, line.Number = bytes.Clone(raw), t.now.Name, t.now.Number
		t.from = line.Seq + 1
		return line, true, nil
	}
}

func (t *Tail) broken(err error, number int) error {
	return &BrokenError{Segment: t.now.Name, Line: number, What: err.Error()}
}

// end handles the end of a file: it continues with the next file, or waits for more lines.
func (t *Tail) end(err error) (more bool, _ error) {
	segments, listed := Segments(t.folder)
	if listed != nil {
		return false, listed
	}
	if len(segments) == 0 || segments[len(segments)-1].First <= t.now.First {
		return false, t.now.Again()
	}
	// The file was complete before the next one was created, but may have grown since its end was
	// read.
	if t.done != t.now.First {
		t.done = t.now.First
		return true, t.now.Again()
	}
	if errors.Is(err, segment.ErrTorn) {
		return false, t.broken(err, t.now.Number+1)
	}
	return true, t.Close()
}

// advance opens the file of the next line.
func (t *Tail) advance() (found bool, _ error) {
	segments, err := Segments(t.folder)
	if err != nil {
		return false, err
	}
	for i, s := range segments {
		if i+1 < len(segments) && segments[i+1].First <= t.from || t.done != 0 && s.First <= t.done {
			continue
		}
		opened, err := s.Open()
		if errors.Is(err, fs.ErrNotExist) {
			continue // pruned
		}
		if err != nil {
			return false, fmt.Errorf("decision log: %w", err)
		}
		t.now = opened
		return true, nil
	}
	return false, nil
}

// ReadBack returns the lines of a log, the newest first. It does not check the chain. It stops
// after an error.
func ReadBack(folder string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		segments, err := Segments(folder)
		if err != nil {
			yield(Line{}, err)
			return
		}
		for _, s := range slices.Backward(segments) {
			for raw, err := range s.Back() {
				if errors.Is(err, fs.ErrNotExist) {
					break // pruned
				}
				line, broken := Line{}, err
				if broken == nil {
					line, broken = ParseLine(raw)
					line.Segment = s.Name
				}
				if broken != nil {
					yield(Line{}, &BrokenError{Segment: s.Name, What: broken.Error()})
					return
				}
				if !yield(line, nil) {
					return
				}
			}
		}
	}
}
