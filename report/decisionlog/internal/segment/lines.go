package segment

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
)

var (
	// ErrTorn means: the last line has no line break.
	ErrTorn = errors.New("the last line is not whole")
	// ErrLong means: a line was skipped.
	ErrLong = fmt.Errorf("a line is longer than %d bytes", MaxLine)
)

// lineReader splits at line breaks. A line is valid until the next call.
type lineReader struct {
	from   io.Reader
	buffer []byte
	start  int   // of the text that is not returned yet
	passed int64 // bytes returned or skipped, line breaks included
	err    error
}

func (l *lineReader) next() ([]byte, error) {
	searched := 0
	for {
		if i := bytes.IndexByte(l.buffer[l.start+searched:], '\n'); i >= 0 {
			line := l.buffer[l.start : l.start+searched+i]
			l.start += len(line) + 1
			l.passed += int64(len(line)) + 1
			if len(line) > MaxLine {
				return nil, ErrLong
			}
			return line, nil
		}
		searched = len(l.buffer) - l.start
		switch {
		case searched > MaxLine:
			return nil, l.skip()
		case errors.Is(l.err, io.EOF) && searched > 0:
			return nil, ErrTorn
		case l.err != nil:
			return nil, l.err
		}
		l.fill()
	}
}

// skip skips a line that is too long.
func (l *lineReader) skip() error {
	for {
		rest := l.buffer[l.start:]
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			l.start += i + 1
			l.passed += int64(i) + 1
			return ErrLong
		}
		l.start = len(l.buffer)
		l.passed += int64(len(rest))
		switch {
		case errors.Is(l.err, io.EOF):
			return ErrTorn
		case l.err != nil:
			return l.err
		}
		l.fill()
	}
}

// fill reads more, and moves the remaining text to the beginning.
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
