package registry

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// files are the files of a layout by their slash-separated names.
type files interface {
	Open(name string) (io.ReadCloser, error)
	io.Closer
}

// errNotALayout says that a file is no archive that can be read.
var errNotALayout = errors.New("it is no tar archive; a compressed one must be unpacked first")

func openFiles(name string) (files, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	if info.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, withoutPath(err)
		}
		return directory{root}, nil
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is neither a directory nor a file")
	}
	return openArchive(name)
}

// directory is a layout on disk. The root keeps links inside it.
type directory struct{ root *os.Root }

// Open implements files; only a regular file is opened, so that a pipe does
// not block.
func (d directory) Open(name string) (io.ReadCloser, error) {
	info, err := d.root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}
	return d.root.Open(name)
}

// Close implements files.
func (d directory) Close() error { return d.root.Close() }

// archive is a layout in a tar file. Its files are read where they lie.
type archive struct {
	file    *os.File
	entries map[string]extent
}

// extent is a regular file's; of a link the offset is negative.
type extent struct{ offset, size int64 }

func openArchive(name string) (*archive, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, withoutPath(err)
	}
	entries, err := listArchive(file)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &archive{file: file, entries: entries}, nil
}

// listArchive notes where each regular file lies, and what is a link. A name that occurs twice is
// refused: two readers could take two different ones.
func listArchive(file *os.File) (map[string]extent, error) {
	entries := map[string]extent{}
	reader := tar.NewReader(file)
	for {
		header, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF) && len(entries) == 0:
			return nil, errNotALayout
		case errors.Is(err, io.EOF):
			return entries, nil
		case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errNotALayout
		case err != nil:
			return nil, err
		}
		isLink := header.Typeflag == tar.TypeSymlink || header.Typeflag == tar.TypeLink
		if header.Typeflag != tar.TypeReg && !isLink {
			continue
		}
		name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		if _, twice := entries[name]; twice {
			return nil, fmt.Errorf("%w: it holds %s twice", errNotALayout, shorten(name))
		}
		if len(entries) == maxArchiveEntries {
			return nil, fmt.Errorf("%w: it holds more than %d files", errNotALayout, maxArchiveEntries)
		}
		offset, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if isLink {
			offset = -1
		}
		entries[name] = extent{offset: offset, size: header.Size}
	}
}

// Open implements files.
func (a *archive) Open(name string) (io.ReadCloser, error) {
	entry, ok := a.entries[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	if entry.offset < 0 {
		return nil, fmt.Errorf("%s is a link, which is not followed", name)
	}
	return io.NopCloser(io.NewSectionReader(a.file, entry.offset, entry.size)), nil
}

// Close implements files.
func (a *archive) Close() error { return a.file.Close() }

// withoutPath drops the path that package os puts into its errors: the Error
// around it names it.
func withoutPath(err error) error {
	if nested, ok := errors.AsType[*fs.PathError](err); ok {
		return nested.Err
	}
	return err
}
