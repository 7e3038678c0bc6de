package limit_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/quaymaster/quaymaster/internal/limit"
)

func TestReadAll(t *testing.T) {
	broken := errors.New("broken")
	tests := []struct {
		reason   string
		reader   io.Reader
		most     int64
		want     string
		exceeded bool
		err      error
	}{
		{reason: "below the bound", reader: strings.NewReader("abc"), most: 4, want: "abc"},
		{reason: "at the bound", reader: strings.NewReader("abcd"), most: 4, want: "abcd"},
		{reason: "one byte above it", reader: strings.NewReader("abcde"), most: 4, exceeded: true},
		{reason: "nothing is allowed and nothing is there", reader: strings.NewReader(""), most: 0},
		{reason: "nothing is allowed", reader: strings.NewReader("a"), most: 0, exceeded: true},
		{reason: "the reader breaks", reader: iotest.ErrReader(broken), most: 4, err: broken},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			got, err := limit.ReadAll(test.reader, test.most, "thing")
			_, exceeded := errors.AsType[*limit.ExceededError](err)
			if exceeded != test.exceeded || (!exceeded && !errors.Is(err, test.err)) || string(got) != test.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	if _, err := limit.ReadAll(strings.NewReader("a"), -1, "thing"); err == nil {
		t.Error("a negative bound was accepted")
	}
}

// TestReadRegular reads files and links to them, and neither waits for a pipe nor reads a device.
func TestReadRegular(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	if err := errors.Join(os.WriteFile(at("file"), []byte("abc"), 0o600), os.Symlink("file", at("link")), syscall.Mkfifo(at("pipe"), 0o600), os.Symlink("/dev/zero", at("device"))); err != nil {
		t.Fatal(err)
	}
	for name, problem := range map[string]string{"file": "", "link": "", "pipe": "no regular file", "device": "no regular file", ".": "no regular file", "none": "no such file"} {
		got, err := limit.ReadRegular(at(name), 3, "thing")
		if problem == "" && (err != nil || string(got) != "abc") || problem != "" && (err == nil || !strings.Contains(err.Error(), problem)) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := limit.ReadRegular(at("file"), 2, "thing"); err == nil || err.Error() != "thing is larger than 2 bytes" {
		t.Errorf("above the bound: %v", err)
	}
}

func Example() {
	_, err := limit.ReadAll(strings.NewReader("far too much"), 4, "policy")
	fmt.Println(err)
	// Output: policy is larger than 4 bytes
}

func TestHeld(t *testing.T) {
	const value = 80
	wide := make([]any, 1000)
	for _, test := range []struct {
		reason string
		of     any
		least  int
		most   int
	}{
		{"a text", "abc", value + 3, value + 3},
		{"a number", 7.0, value, value},
		{"nothing", nil, value, value},
		{"an empty object", map[string]any{}, value, value},
		{"an object", map[string]any{"ab": "abc", "c": true}, 3*value + 6, 3*value + 6},
		{"a list", []any{"a", nil}, 3*value + 1, 3*value + 1},
		{"as much as is asked about", wide[:24], 2000, 2000},
		{"more, at which it stops", wide, 2001, 2000 + value},
		{"more in an object", map[string]any{"a": wide, "b": wide}, 2001, 2000 + 2*value + 1},
		{"more within a list", []any{wide, wide}, 2001, 2000 + 2*value},
	} {
		if got := limit.Held(test.of, 2000); got < test.least || got > test.most {
			t.Errorf("%s: %d, want %d to %d", test.reason, got, test.least, test.most)
		}
	}
}

func TestReadFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := limit.ReadFile(name, 5, "the key"); err != nil || string(text) != "12345" {
		t.Errorf("within the bound: %q, %v", text, err)
	}
	if text, err := limit.ReadFile(name, 4, "the key"); text != nil || err == nil || err.Error() != "the key is larger than 4 bytes" {
		t.Errorf("beyond the bound: %q, %v", text, err)
	}
	if _, err := limit.ReadFile(name+".none", 5, "the key"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}
