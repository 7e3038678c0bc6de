package journal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// disk is what the journal asks of the file system for what it writes.
type disk interface {
	// create makes a file that must not be there yet; resume opens one that is, to go
	// on at an offset, where it is cut off.
	create(path string) (handle, error)
	resume(path string, at int64) (handle, error)
}

// handle is a file that is written to at its end.
type handle interface {
	io.WriteCloser
	Sync() error
}

// realDisk is the operating system's.
type realDisk struct{}

func (realDisk) create(path string) (handle, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (realDisk) resume(path string, at int64) (handle, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.Size() < at:
		err = errors.New(path + " is shorter than what was written to it")
	default:
		err = file.Truncate(at)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// syncFolder makes the names in a folder durable, where the file system can.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	err = folder.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		err = nil
	}
	return errors.Join(err, folder.Close())
}

// replace writes a small file, all of it or nothing.
func replace(path string, text []byte, sync bool) error {
	next := path + temporary
	file, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil && sync {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(next, path)
}

// temporary is what the names of files end with that are not finished.
const temporary = ".tmp"

// sweep removes what an earlier process did not finish.
func sweep(folder string) error {
	left, err := filepath.Glob(filepath.Join(folder, "*"+temporary))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
