package decisionlog

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	segmentPrefix = "decisions-"
	segmentSuffix = ".jsonl"
	// Compressed is what the name of a compressed file ends with (gzip, RFC 1952).
	Compressed = ".gz"
	// HeadName is the file beside the log that has a copy of the last checkpoint.
	HeadName = "head.jsonl"
)

// Segment is a file of a log.
type Segment struct {
	Folder, Name string
	// First is the number of its first line.
	First      uint64
	Compressed bool
}

// Path is the file's.
func (s Segment) Path() string { return filepath.Join(s.Folder, s.Name) }

// SegmentName is the name of the file that begins with a line; names sort as numbers do.
func SegmentName(first uint64) string {
	return fmt.Sprintf("%s%020d%s", segmentPrefix, first, segmentSuffix)
}

// segmentOf reads a name; false if it is no log file's.
func segmentOf(folder, name string) (Segment, bool) {
	bare, compressed := strings.CutSuffix(name, Compressed)
	digits, isOne := strings.CutSuffix(bare, segmentSuffix)
	digits, named := strings.CutPrefix(digits, segmentPrefix)
	first, err := strconv.ParseUint(digits, 10, 64)
	if !isOne || !named || err != nil || bare != SegmentName(first) {
		return Segment{}, false
	}
	return Segment{Folder: folder, Name: name, First: first, Compressed: compressed}, true
}

// Segments returns the files of a log, the oldest first. Of one that is there twice,
// since it was being compressed, the one that is not compressed counts.
func Segments(folder string) ([]Segment, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	if len(entries) > maxFiles {
		return nil, fmt.Errorf("decision log: %s has %d files, of which at most %d are read: is it the log's own folder?", folder, len(entries), maxFiles)
	}
	var found []Segment
	for _, entry := range entries { // sorted by name, the compressed one after the other
		s, ok := segmentOf(folder, entry.Name())
		if !ok || entry.IsDir() || len(found) > 0 && found[len(found)-1].First == s.First {
			continue
		}
		found = append(found, s)
	}
	slices.SortStableFunc(found, func(a, b Segment) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// open opens the file, which may have been compressed since it was listed.
func (s Segment) open() (*segmentReader, error) {
	file, err := os.Open(s.Path())
	if errors.Is(err, fs.ErrNotExist) && !s.Compressed {
		s.Name, s.Compressed = s.Name+Compressed, true
		file, err = os.Open(s.Path())
	}
	if err != nil {
		return nil, err
	}
	r := &segmentReader{Segment: s, file: file}
	if !s.Compressed {
		r.lines.from = file
		return r, nil
	}
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", s.Name, err), file.Close())
	}
	r.lines.from = unpacked
	return r, nil
}

// segmentReader reads the lines of a file in their order.
type segmentReader struct {
	Segment
	file   *os.File
	lines  lineReader
	number int   // of the last line that was returned or passed over
	before int64 // what was read by an earlier lineReader, in bytes
}

func (r *segmentReader) Close() error { return r.file.Close() }

// next returns the next whole line, without its line break, until the next call. At
// the end it fails with io.EOF, or errTorn where the last line has no line break.
func (r *segmentReader) next() ([]byte, error) {
	line, err := r.lines.next()
	if err == nil || errors.Is(err, errLong) {
		r.number++
	}
	return line, err
}

// offset is after the last line, in what is not compressed.
func (r *segmentReader) offset() int64 { return r.before + r.lines.passed }

// place is the number of the line that an error of next is about.
func (r *segmentReader) place(err error) int {
	if errors.Is(err, errLong) {
		return r.number
	}
	return r.number + 1
}

// again goes back to the end of the last whole line, to see what was written since.
func (r *segmentReader) again() error {
	if r.Compressed {
		return nil // it is never written to
	}
	r.before = r.offset()
	if _, err := r.file.Seek(r.before, io.SeekStart); err != nil {
		return err
	}
	r.lines = lineReader{from: r.file, buffer: r.lines.buffer[:0]}
	return nil
}
