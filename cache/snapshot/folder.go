package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/quaymaster/quaymaster/internal/file"
)

// Folder is a Store of files. Each is written under another name first, so that a killed process
// leaves the older one.
type Folder struct{ path string }

// NewFolder returns a Store in a folder, which is created at the first save.
func NewFolder(path string) (*Folder, error) {
	if path == "" {
		return nil, errors.New("keep snapshots: want a folder")
	}
	return &Folder{path}, nil
}

func (f *Folder) file(i int) string { return filepath.Join(f.path, fmt.Sprintf("snapshot-%d", i)) }

// Load implements Store. It waits for an unresponsive volume until ctx ends.
func (f *Folder) Load(ctx context.Context) ([][]byte, error) {
	done := make(chan struct{})
	var read [][]byte
	var failed error
	go func() {
		defer close(done)
		read, failed = f.read()
	}()
	select {
	case <-done:
		return read, failed
	case <-ctx.Done():
		return nil, fmt.Errorf("load a snapshot: %s does not answer: %w", f.path, ctx.Err())
	}
}

func (f *Folder) read() ([][]byte, error) {
	var parts [][]byte
	for i := range MaxParts {
		info, err := os.Stat(f.file(i))
		if errors.Is(err, fs.ErrNotExist) {
			return parts, nil
		}
		if err == nil && !info.Mode().IsRegular() {
			err = fmt.Errorf("%s is no file", f.file(i))
		}
		if err != nil {
			return parts, fmt.Errorf("load a snapshot: %w", err)
		}
		if info.Size() > maxSealed {
			parts = append(parts, nil) // too large for a part: it cannot be opened
			continue
		}
		part, err := os.ReadFile(f.file(i))
		if err != nil {
			return parts, fmt.Errorf("load a snapshot: %w", err)
		}
		parts = append(parts, part)
	}
	return parts, nil
}

// Save implements Store.
func (f *Folder) Save(_ context.Context, parts [][]byte) error {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return fmt.Errorf("save a snapshot: %w", err)
	}
	for i, part := range parts {
		if err := file.Replace(f.file(i), part); err != nil {
			return fmt.Errorf("save a snapshot: %w", err)
		}
	}
	for i := len(parts); i < MaxParts; i++ {
		err := os.Remove(f.file(i))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("save a snapshot: %w", err)
		}
	}
	return nil
}
