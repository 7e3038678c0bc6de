package layout

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// files are the files of a layout by their slash-separated names.
type files interface {
	Open(name string) (io.ReadCloser, error)
	// Blobs returns the names of the blobs of an algorithm with at most a number of bytes, sorted.
	Blobs(algorithm string, most int64) ([]string, error)
	io.Closer
}

// errNotALayout marks a file that is no readable archive.
var errNotALayout = errors.New("it cannot be read as an OCI layout")

// errNoArchive is for files of another format.
var errNoArchive = fmt.Errorf("%w: it is no tar archive; a compressed one must be unpacked first", errNotALayout)

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

// listArchive records the extent of each regular file, and the links. It refuses an
// archive that another program could unpack differently: with a name that occurs twice or
// leads through a link, or with features that tar readers interpret differently.
func listArchive(file *os.File) (map[string]extent, error) {
	entries := map[string]extent{}
	reader := tar.NewReader(file)
	var end int64 // of the entry before
	for {
		header, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF) && len(entries) == 0:
			return nil, errNoArchive
		case errors.Is(err, io.EOF):
			return entries, throughLink(entries)
		case errors.Is(err, tar.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, errNoArchive
		case err != nil:
			return nil, err
		}
		if err := oddEntry(header); err != nil {
			return nil, fmt.Errorf("%w: %w", errNotALayout, err)
		}
		offset, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		if err := oddHeaders(file, end, offset, header.Typeflag == tar.TypeXGlobalHeader); err != nil {
			return nil, fmt.Errorf("%w: the header of %s: %w", errNotALayout, content.Shorten(header.Name), err)
		}
		end = blocks(offset + header.Size)
		isLink := header.Typeflag == tar.TypeSymlink || header.Typeflag == tar.TypeLink
		if header.Typeflag != tar.TypeReg && !isLink {
			continue
		}
		name := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		if _, twice := entries[name]; twice {
			return nil, fmt.Errorf("%w: it holds %s twice", errNotALayout, content.Shorten(name))
		}
		if len(entries) == maxArchiveEntries {
			return nil, fmt.Errorf("%w: it holds more than %d files", errNotALayout, maxArchiveEntries)
		}
		if isLink {
			offset = -1
		}
		entries[name] = extent{offset: offset, size: header.Size}
	}
}

// oddEntry refuses an entry that tar readers interpret differently: a type that some of
// them treat as a file, content after a header that has none, and records that only some
// heed.
func oddEntry(header *tar.Header) error {
	name := content.Shorten(header.Name)
	isGlobal := header.Typeflag == tar.TypeXGlobalHeader
	switch header.Typeflag {
	case tar.TypeReg:
		if strings.HasSuffix(header.Name, "/") {
			return fmt.Errorf("%s is a file that is called a folder", name)
		}
	case tar.TypeDir, tar.TypeLink, tar.TypeSymlink:
		if header.Size != 0 {
			return fmt.Errorf("%s is a folder or a link and has content", name)
		}
	case tar.TypeXGlobalHeader:
	default:
		return fmt.Errorf("%s is neither a file nor a folder nor a link", name)
	}
	if slices.Contains(strings.Split(header.Name, "/"), "..") {
		return fmt.Errorf("%s leads through a folder above", name)
	}
	for key := range header.PAXRecords {
		if isGlobal && !slices.Contains(globalRecords(), key) || slices.ContainsFunc(sparseRecords(),
			func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
			return fmt.Errorf("%s has a record that programs read differently", name)
		}
	}
	return nil
}

// globalRecords are the records allowed for all files at once: "git archive" writes a
// comment. Some programs would apply a global name or size.
func globalRecords() []string {
	return []string{"comment", "mtime", "atime", "ctime", "uid", "gid", "uname", "gname"}
}

// sparseRecords are the prefixes of records that override a file's name or content in its
// header.
func sparseRecords() []string { return []string{"GNU.sparse.", "SCHILY.realsize", "SUN.holesdata"} }

// blockSize is that of tar. A header has one block, and content ends with a whole one.
const blockSize = 512

func blocks(size int64) int64 { return (size + blockSize - 1) / blockSize * blockSize }

// oddHeaders refuses more headers before an entry than one, and one with its records,
// or with a long name and a long link as GNU tar writes them: programs differ in which of
// several counts. The last header in the range is the entry's own.
func oddHeaders(file io.ReaderAt, from, to int64, isGlobal bool) error {
	kinds := ""
	for from+blockSize < to {
		var header [blockSize]byte
		if _, err := file.ReadAt(header[:], from); err != nil {
			return err
		}
		kinds += string(header[156:157])
		size, err := strconv.ParseInt(strings.Trim(string(header[124:136]), " \x00"), 8, 64)
		if err != nil || size < 0 || len(kinds) > 2 {
			return errHeaders
		}
		from += blockSize + blocks(size)
	}
	allowed := []string{"", "x", "L", "K", "LK", "KL"}
	if isGlobal {
		allowed = []string{"", "g"}
	}
	if !slices.Contains(allowed, kinds) {
		return errHeaders
	}
	return nil
}

var errHeaders = errors.New("programs read its extended headers differently")

// throughLink refuses a name that leads through a link: the file would be unpacked
// elsewhere than its name indicates.
func throughLink(entries map[string]extent) error {
	names := slices.Sorted(maps.Keys(entries))
	for _, link := range names {
		if entries[link].offset >= 0 {
			continue
		}
		below := link + "/"
		if i, _ := slices.BinarySearch(names, below); i < len(names) && strings.HasPrefix(names[i], below) {
			return fmt.Errorf("%w: %s leads through a link", errNotALayout, content.Shorten(names[i]))
		}
	}
	return nil
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
