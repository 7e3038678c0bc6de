package journal

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// disk is the part of the file system that the journal writes through.
type disk interface {
	// create makes a new file and fails if it exists. resume opens an existing one and truncates
	// it at an offset.
	create(path string) (handle, error)
	resume(path string, at int64) (handle, error)
}

// handle is a file open for appending.
type handle interface {
	io.WriteCloser
	Sync() error
}

// realDisk is the operating system's file system.
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
		err = errors.New(path + " is shorter than the data written to it")
	default:
		err = file.Truncate(at)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// syncFolder makes the names in a folder durable, where the file system supports it.
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

// replace writes a small file atomically.
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

// temporary is the suffix of incomplete files.
const temporary = ".tmp"

// sweep removes the incomplete files of an earlier process.
func sweep(folder string) error {
	left, err := filepath.Glob(filepath.Join(folder, "*"+temporary))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}
