package segment

import (
	"bytes"
	"io"
	"iter"
	"os"

	"github.com/quaymaster/quaymaster/internal/limit"
)

// Back returns the whole lines of the file, the last one first. The caller owns each line.
func (s Segment) Back() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		opened, err := s.Open()
		if err != nil {
			yield(nil, err)
			return
		}
		defer func() { _ = opened.Close() }() // opened read-only
		if !opened.Compressed {
			backwards(opened.file, yield)
			return
		}
		all, err := limit.ReadAll(opened.lines.from, maxSegment, s.Name)
		if err != nil {
			yield(nil, err)
			return
		}
		backLines(all, yield)
	}
}

// backLines yields the whole lines of a text from its end, and returns the text before the first
// line break. It returns false if the caller stops.
func backLines(text []byte, yield func([]byte, error) bool) bool {
	end := bytes.LastIndexByte(text, '\n')
	for end >= 0 {
		start := bytes.LastIndexByte(text[:end], '\n')
		if !yield(bytes.Clone(text[start+1:end]), nil) {
			return false
		}
		end = start
	}
	return true
}

// backwards yields the whole lines of a file from its end, a block at a time.
func backwards(file *os.File, yield func([]byte, error) bool) {
	const block = 256 << 10
	end, err := file.Seek(0, io.SeekEnd)
	var carried []byte // begins inside a line and ends after one
	for err == nil && end > 0 {
		start := max(end-block, 0)
		text := make([]byte, int(end-start), int(end-start)+len(carried))
		if _, err = file.ReadAt(text, start); err != nil {
			break
		}
		text, end = append(text, carried...), start
		whole := 0 // the start of the first whole line
		if start > 0 {
			whole = bytes.IndexByte(text, '\n') + 1
		}
		if start > 0 && whole == 0 {
			if len(text) > MaxLine+block {
				err = ErrLong
			}
			carried = text
			continue
		}
		if !backLines(text[whole:], yield) {
			return
		}
		carried = text[:whole]
	}
	if err != nil {
		yield(nil, err)
	}
}
