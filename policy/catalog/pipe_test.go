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

// TestFileThatGoesAway: a file that went away after the folder was listed, as it is while a
// ConfigMap changes, has all read again. A pipe in front of it says when that is.
func TestFileThatGoesAway(t *testing.T) {
	dir := t.TempDir()
	lay(t, dir, map[string]string{"b.yaml": policyNamed("b"), "c.yaml": policyNamed("c")})
	pipe := filepath.Join(dir, "a.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits for who reads
		if err == nil {
			err = errors.Join(os.Remove(pipe), os.Remove(filepath.Join(dir, "b.yaml")), w.Close())
		}
		done <- err
	}()
	names, err := loaded(t, dir, "")
	if r, err := os.OpenFile(pipe, os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil { // nobody has read it: let go who waits
		defer func() { _ = r.Close() }()
		t.Error("the pipe was not read")
	}
	if err := errors.Join(err, <-done); err != nil || fmt.Sprint(names) != "[c]" {
		t.Errorf("%v, %v", names, err)
	}
}
