// Package file answers: how is a file replaced so that nobody ever reads half of it?
package file

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace writes a file that only its owner reads (mode 0600), all of it or nothing: a
// process or machine that dies meanwhile leaves the older one. The folder must be there.
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
