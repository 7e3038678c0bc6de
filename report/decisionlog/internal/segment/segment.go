package segment

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
	prefix = "decisions-"
	suffix = ".jsonl"
	// Compressed is the suffix of a compressed file's name (gzip, RFC 1952).
	Compressed = ".gz"
	// HeadName is the file in the log's folder with a copy of the last checkpoint.
	HeadName = "head.jsonl"
)

// Pattern matches the names of uncompressed files.
const Pattern = prefix + "*" + suffix

// Segment is a file of a log.
type Segment struct {
	Folder, Name string
	// First is the number of its first line.
	First      uint64
	Compressed bool
}

// Path is the path of the file.
func (s Segment) Path() string { return filepath.Join(s.Folder, s.Name) }

// Name is the name of a file, by the number of its first line. Names sort in the order of
// numbers.
func Name(first uint64) string {
	return fmt.Sprintf("%s%020d%s", prefix, first, suffix)
}

// Of parses the name of a file in a folder, and returns false if it is not a log file.
func Of(folder, name string) (Segment, bool) {
	bare, compressed := strings.CutSuffix(name, Compressed)
	digits, isOne := strings.CutSuffix(bare, suffix)
	digits, named := strings.CutPrefix(digits, prefix)
	first, err := strconv.ParseUint(digits, 10, 64)
	if !isOne || !named || err != nil || bare != Name(first) {
		return Segment{}, false
	}
	return Segment{Folder: folder, Name: name, First: first, Compressed: compressed}, true
}

// List returns the files of a log, the oldest first. While a file is being compressed both forms
// exist; the uncompressed one is returned.
func List(folder string) ([]Segment, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("decision log: %w", err)
	}
	if len(entries) > maxFiles {
		return nil, fmt.Errorf("decision log: %s has %d files, of which at most %d are read: is it the log's own folder?", folder, len(entries), maxFiles)
	}
	var found []Segment
	for _, entry := range entries { // sorted by name, the compressed one second
		s, ok := Of(folder, entry.Name())
		if !ok || entry.IsDir() || len(found) > 0 && found[len(found)-1].First == s.First {
			continue
		}
		found = append(found, s)
	}
	slices.SortStableFunc(found, func(a, b Segment) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// Open opens the file, which may have been compressed since it was listed.
func (s Segment) Open() (*Reader, error) {
	file, err := os.Open(s.Path())
	if errors.Is(err, fs.ErrNotExist) && !s.Compressed {
		s.Name, s.Compressed = s.Name+Compressed, true
		file, err = os.Open(s.Path())
	}
	if err != nil {
		return nil, err
	}
	r := &Reader{Segment: s, file: file}
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

// Reader reads the lines of a file in order.
type Reader struct {
	Segment
	file  *os.File
	lines lineReader
	// Number is the number of the last line that was returned or skipped, from 1.
	Number int
	before int64 // bytes read by an earlier lineReader
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }

// Next returns the next whole line, without its line break, valid until the next call. At the end
// it fails with io.EOF, or with ErrTorn where the last line has no line break.
func (r *Reader) Next() ([]byte, error) {
	line, err := r.lines.next()
	if err == nil || errors.Is(err, ErrLong) {
		r.Number++
	}
	return line, err
}

// Offset is the offset after the last line, in uncompressed bytes.
func (r *Reader) Offset() int64 { return r.before + r.lines.passed }

// Place is the number of the line that caused an error of Next.
func (r *Reader) Place(err error) int {
	if errors.Is(err, ErrLong) {
		return r.Number
	}
	return r.Number + 1
}

// Again goes back to the end of the last whole line, to read lines that were appended since.
func (r *Reader) Again() error {
	if r.Compressed {
		return nil // it is immutable
	}
	r.before = r.Offset()
	if _, err := r.file.Seek(r.before, io.SeekStart); err != nil {
		return err
	}
	r.lines = lineReader{from: r.file, buffer: r.lines.buffer[:0]}
	return nil
}
