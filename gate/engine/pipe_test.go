//go:build unix

package engine

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/quaymaster/quaymaster/workload"
)

// TestPipes: a path of a command line may be a pipe; one of settings, and one in a folder, may not.
func TestPipes(t *testing.T) {
	t.Parallel()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	folder := t.TempDir()
	pipe := filepath.Join(folder, "a.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		reason  string
		read    func([]string) ([]workload.Object, error)
		path    string
		isTaken bool
	}{
		{"an argument", ReadArguments, pipe, true},
		{"in a folder that is an argument", ReadArguments, folder, false},
		{"a setting", ReadDocuments, pipe, false},
		{"in a folder that is a setting", ReadDocuments, folder, false},
	} {
		written := make(chan error, 1)
		if c.isTaken {
			go func() { written <- os.WriteFile(pipe, []byte(object), 0o600) }()
		} else {
			written <- nil
		}
		objects, err := c.read([]string{c.path})
		if err := <-written; err != nil {
			t.Fatal(err)
		}
		switch {
		case c.isTaken && (err != nil || len(objects) != 1):
			t.Errorf("%s: %d objects, %v", c.reason, len(objects), err)
		case !c.isTaken && (err == nil || !strings.Contains(err.Error(), "a.yaml: is no regular file")):
			t.Errorf("%s: %d objects, %v", c.reason, len(objects), err)
		}
	}
}
