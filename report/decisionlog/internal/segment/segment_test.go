package segment_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/report/decisionlog/internal/segment"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if strings.HasSuffix(path, segment.Compressed) {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		text = packed.String()
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestList finds the files of a log in their order, and none that is not one.
func TestList(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{
		segment.Name(100), segment.Name(2) + segment.Compressed, segment.Name(9), segment.Name(9) + segment.Compressed,
		segment.HeadName, "decisions-1.jsonl", segment.Name(7) + ".torn", "other-" + segment.Name(1),
	} {
		write(t, filepath.Join(folder, name), "")
	}
	if err := os.Mkdir(filepath.Join(folder, segment.Name(8)), 0o700); err != nil {
		t.Fatal(err)
	}
	found, err := segment.List(folder)
	want := []segment.Segment{
		{Folder: folder, Name: segment.Name(2) + segment.Compressed, First: 2, Compressed: true},
		{Folder: folder, Name: segment.Name(9), First: 9}, {Folder: folder, Name: segment.Name(100), First: 100},
	}
	if err != nil || !slices.Equal(found, want) {
		t.Errorf("found %v, want %v: %v", found, want, err)
	}
	for _, s := range want {
		if of, ok := segment.Of(folder, s.Name); !ok || of != s {
			t.Errorf("%s is read as %v, %v", s.Name, of, ok)
		}
	}
	if _, ok := segment.Of(folder, "decisions-2.jsonl"); ok {
		t.Error("a number without its zeros is one of a log")
	}
}

// TestLines reads files in both directions, plain and compressed: only whole lines come,
// and a line that is too long is passed over.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", segment.MaxLine+1)
	for _, row := range []struct {
		reason, text string
		lines        []string
		long         int // the number of the line that is passed over; 0: none
		end          error
	}{
		{"whole lines", "one\ntwo\n\nfour\n", []string{"one", "two", "", "four"}, 0, io.EOF},
		{"nothing", "", nil, 0, io.EOF},
		{"the last line is not whole", "one\ntw", []string{"one"}, 0, segment.ErrTorn},
		{"no line is whole", "on", nil, 0, segment.ErrTorn},
		{"as long as may be", long[1:] + "\ntwo\n", []string{long[1:], "two"}, 0, io.EOF},
		{"longer than may be", "one\n" + long + "\nthree\n", []string{"one", "three"}, 2, io.EOF},
	} {
		for _, name := range []string{segment.Name(1), segment.Name(1) + segment.Compressed} {
			folder := t.TempDir()
			write(t, filepath.Join(folder, name), row.text)
			s, ok := segment.Of(folder, name)
			if !ok {
				t.Fatalf("%s is no file of a log", name)
			}
			lines, skipped, end := forward(t, s)
			if !slices.Equal(lines, row.lines) || skipped != row.long || !errors.Is(end, row.end) {
				t.Errorf("%s (%s): %d lines, passed over %d, and then %v; want %d, %d and %v", row.reason, name, len(lines), skipped, end, len(row.lines), row.long, row.end)
			}
			if row.long > 0 {
				continue // backwards the reader refuses it
			}
			var back []string
			for line, err := range s.Back() {
				if err != nil {
					t.Fatalf("%s (%s): %v", row.reason, name, err)
				}
				back = append(back, string(line))
			}
			slices.Reverse(back)
			if !slices.Equal(back, row.lines) {
				t.Errorf("%s (%s): %d lines backwards, want %d", row.reason, name, len(back), len(row.lines))
			}
		}
	}
}

// forward returns the lines, the number of one that was passed over, and how it ended.
func forward(t *testing.T, s segment.Segment) (lines []string, skipped int, end error) {
	t.Helper()
	r, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // it was only read
	for {
		line, err := r.Next()
		switch {
		case errors.Is(err, segment.ErrLong):
			skipped = r.Place(err)
		case err != nil:
			return lines, skipped, err
		default:
			lines = append(lines, string(line))
		}
	}
}

// TestAgain sees the rest of a line that was not whole.
func TestAgain(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, segment.Name(1))
	write(t, path, "one\ntw")
	s, _ := segment.Of(folder, segment.Name(1))
	r, err := s.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }() // it was only read
	if line, err := r.Next(); err != nil || string(line) != "one" || r.Offset() != 4 {
		t.Fatalf("the first line is %q, up to %d: %v", line, r.Offset(), err)
	}
	if line, err := r.Next(); !errors.Is(err, segment.ErrTorn) || r.Offset() != 4 {
		t.Fatalf("the second line is %q, up to %d: %v", line, r.Offset(), err)
	}
	write(t, path, "one\ntwo\n")
	if err := r.Again(); err != nil {
		t.Fatal(err)
	}
	if line, err := r.Next(); err != nil || string(line) != "two" || r.Number != 2 || r.Offset() != 8 {
		t.Errorf("the second line is %q, number %d, up to %d: %v", line, r.Number, r.Offset(), err)
	}
}
