package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Folder is a Store of files. Each is written under another name first, so that a
// process that is killed leaves the older one.
type Folder struct{ path string }

// NewFolder returns a Store in a folder, which is made when something is saved.
func NewFolder(path string) (*Folder, error) {
	if path == "" {
		return nil, errors.New("keep snapshots: want a folder")
	}
	return &Folder{path}, nil
}

func (f *Folder) file(i int) string { return filepath.Join(f.path, fmt.Sprintf("snapshot-%d", i)) }

// Load implements Store.
func (f *Folder) Load(context.Context) ([][]byte, error) {
	var parts [][]byte
	for i := range MaxParts {
		info, err := os.Stat(f.file(i))
		if errors.Is(err, fs.ErrNotExist) {
			return parts, nil
		}
		if err != nil {
			return parts, fmt.Errorf("load a snapshot: %w", err)
		}
		if info.Size() > MaxPart+1<<20 {
			return parts, fmt.Errorf("load a snapshot: %s has %d bytes, more than any part", f.file(i), info.Size())
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
		if err := replace(f.file(i), part); err != nil {
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

// replace writes a file whole or not at all.
func replace(path string, content []byte) error {
	unfinished, err := os.CreateTemp(filepath.Dir(path), ".unfinished-*")
	if err != nil {
		return err
	}
	_, err = unfinished.Write(content)
	if err = errors.Join(err, unfinished.Sync(), unfinished.Close()); err == nil {
		err = os.Rename(unfinished.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(unfinished.Name()))
	}
	return nil
}
