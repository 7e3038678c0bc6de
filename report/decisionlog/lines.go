package decisionlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

var (
	// errTorn: the last line has no line break.
	errTorn = errors.New("the last line is not whole")
	// errLong: a line was passed over.
	errLong = fmt.Errorf("a line is longer than %d bytes", maxLine)
)

// lineReader splits at line breaks. A line is valid until the next one is asked for.
type lineReader struct {
	from   io.Reader
	buffer []byte
	start  int   // of what was not returned yet
	passed int64 // how many bytes were returned or passed over, line breaks included
	err    error
}

func (l *lineReader) next() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(l.buffer[l.start+searched:], '\n'); i >= 0 {
			line := l.buffer[l.start : l.start+searched+i]
			l.start += len(line) + 1
			l.passed += int64(len(line)) + 1
			if len(line) > maxLine {
				return nil, errLong
			}
			return line, nil
		}
		searched = len(l.buffer) - l.start
		switch {
		case searched > maxLine:
			return nil, l.skip()
		case errors.Is(l.err, io.EOF) && searched > 0:
			return nil, errTorn
		case l.err != nil:
			return nil, l.err
		}
		l.fill()
	}
}

// skip passes over a line that is too long.
func (l *lineReader) skip() error {
	for {
		rest := l.buffer[l.start:]
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			l.start += i + 1
			l.passed += int64(i) + 1
			return errLong
		}
		l.start = len(l.buffer)
		l.passed += int64(len(rest))
		switch {
		case errors.Is(l.err, io.EOF):
			return errTorn
		case l.err != nil:
			return l.err
		}
		l.fill()
	}
}

// fill reads more, and moves what is left to the beginning.
func (l *lineReader) fill() {
	const block = 64 << 10
	if l.start > 0 {
		l.buffer = l.buffer[:copy(l.buffer, l.buffer[l.start:])]
		l.start = 0
	}
	l.buffer = slices.Grow(l.buffer, block)
	n, err := l.from.Read(l.buffer[len(l.buffer):cap(l.buffer)])
	l.buffer = l.buffer[:len(l.buffer)+n]
	l.err = err
}

// Line is a line as it was read.
type Line struct {
	Entry
	// Raw is the line, without its line break.
	Raw []byte
	// Segment is the file's name, and Number that of the line in it, from 1; 0 where
	// nobody counted.
	Segment string
	Number  int
}

// ParseLine reads one line. Fields that it does not know are left alone, since they
// may be added; a version that it does not know is an error.
func ParseLine(raw []byte) (Line, error) {
	line := Line{Raw: raw}
	if len(raw) > maxLine {
		return line, errLong
	}
	if err := json.Unmarshal(raw, &line.Entry); err != nil {
		return line, fmt.Errorf("it is no line of a decision log: %w", err)
	}
	if line.V != Version {
		return line, fmt.Errorf("it is of version %d, and this program reads version %d", line.V, Version)
	}
	contents := map[Kind]bool{
		KindOpen: line.Open != nil, KindDecision: line.Decision != nil, KindLost: line.Lost != nil,
		KindPruned: line.Pruned != nil, KindCheckpoint: line.Checkpoint != nil,
	}
	if has, known := contents[line.Kind]; known && !has {
		return line, fmt.Errorf("it is said to be of kind %q, and has nothing of it", line.Kind)
	}
	return line, nil
}

// hash is that of the line before it.
func (l *Line) after(at Position) error {
	if want := fmt.Sprintf("%x", at.Hash); l.Prev != want {
		return &BrokenError{What: "the hash of the line before it", Expected: want, Found: l.Prev}
	}
	if l.Seq != at.Seq+1 {
		return &BrokenError{What: "the number of the line", Expected: fmt.Sprint(at.Seq + 1), Found: fmt.Sprint(l.Seq)}
	}
	return nil
}
