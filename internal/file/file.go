// Package file replaces files atomically, so that readers never see partial content.
package file

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace writes a file with mode 0600 completely or not at all: after a crash, the older file
// remains. The folder must exist.
func Replace(path string, content []byte) error {
	next, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = next.Write(content)
	if err = errors.Join(err, next.Sync(), next.Close()); err == nil {
		err = os.Rename(next.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}
