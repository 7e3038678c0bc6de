//go:build unix

package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFileThatGoesAway: all files are read again, once, if one went away after the folder was listed.
func TestFileThatGoesAway(t *testing.T) {
	gone, other := fmt.Errorf("a.yaml: %w", fs.ErrNotExist), errors.New("unreadable")
	for _, row := range []struct {
		reason string
		errs   []error
		reads  int
		want   error
	}{
		{"a file went away", []error{gone, nil}, 2, nil},
		{"it is still listed", []error{gone, gone, nil}, 2, gone},
		{"another failure", []error{other, nil}, 1, other},
		{"none", []error{nil, other}, 1, nil},
	} {
		reads := 0
		files, err := readAgain(func() (Files, error) {
			reads++
			return Files{Hash: fmt.Sprint(reads)}, row.errs[reads-1]
		})
		if reads != row.reads || !errors.Is(err, row.want) || files.Hash != fmt.Sprint(row.reads) {
			t.Errorf("%s: %d reads, %v, %v", row.reason, reads, files, err)
		}
	}
}

// TestUnreadableFiles: anything but a regular file is an error, and stops no later reload.
func TestUnreadableFiles(t *testing.T) {
	catalog, err := New(Options{Dialects: []Dialect{nil}})
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "a.yaml")
	follow, err := NewFolder(FolderOptions{Paths: []string{folder}, Catalog: catalog})
	if err != nil {
		t.Fatal(err)
	}
	for kind, lay := range map[string]func() error{
		"a pipe":   func() error { return syscall.Mkfifo(path, 0o600) },
		"a device": func() error { return os.Symlink("/dev/zero", path) },
	} {
		if err := lay(); err != nil {
			t.Fatal(err)
		}
		if _, err := follow.Load(); err == nil || !strings.Contains(err.Error(), "a.yaml: is no regular file") {
			t.Errorf("%s: %v", kind, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if _, err := follow.Load(); err != nil {
			t.Errorf("after %s: %v", kind, err)
		}
	}
}
