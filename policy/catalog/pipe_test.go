//go:build unix

package catalog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestFileThatGoesAway: all files are read again if one went away after the folder was listed, as
// while a ConfigMap changes. A pipe listed before it gives the moment.
func TestFileThatGoesAway(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, map[string]string{"b.yaml": policyNamed("b"), "c.yaml": policyNamed("c")})
	pipe := filepath.Join(dir, "a.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for a reader
		if err == nil {
			err = errors.Join(os.Remove(pipe), os.Remove(filepath.Join(dir, "b.yaml")), w.Close())
		}
		done <- err
	}()
	names, err := loaded(t, dir, "")
	if r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil { // it was not read: release the writer
		defer func() { _ = r.Close() }()
		t.Error("the pipe was not read")
	}
	if err := errors.Join(err, <-done); err != nil || fmt.Sprint(names) != "[c]" {
		t.Errorf("%v, %v", names, err)
	}
}
