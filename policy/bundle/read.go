package bundle

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/internal/strictjson"
)

// Read is the content of a bundle that was read, and its metadata.
type Read struct {
	Contents
	// Digest is the SHA-256 digest of the file.
	Digest image.Digest
	// Entries are the files in it.
	Entries []Entry
}

// OpenFile reads a bundle by Open.
func OpenFile(name string, pinned image.Digest) (*Read, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	read, err := Open(file, pinned)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return read, nil
}

// Open reads a bundle. The file must have the pinned digest unless that is zero. A file with any
// deviation from the format is refused.
func Open(from io.Reader, pinned image.Digest) (*Read, error) {
	packed, err := limit.ReadAll(from, MaxFile, "the bundle")
	if err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	found := &Read{Digest: image.DigestOf(packed)}
	if !pinned.IsZero() && !pinned.Matches(packed) {
		return nil, fmt.Errorf("read bundle: its digest is %s, and %s is wanted: it is another bundle, or it was changed", found.Digest, pinned)
	}
	if err := found.unpack(packed); err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	return found, nil
}

func (r *Read) unpack(packed []byte) error {
	source := bufio.NewReader(bytes.NewReader(packed))
	unzipped, err := gzip.NewReader(source)
	if err != nil {
		return fmt.Errorf("it is no gzip file: %w", err)
	}
	unzipped.Multistream(false)
	bounded := &io.LimitedReader{R: unzipped, N: maxTotal + 1}
	err = r.entries(tar.NewReader(bounded))
	if bounded.N <= 0 {
		return fmt.Errorf("unpacked, it exceeds the bound of %d bytes", maxTotal)
	}
	if err != nil {
		return err
	}
	// Other programs may read data that follows the end of the archive.
	if _, err := bounded.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return errors.New("something follows the archive's end")
	}
	if _, err := source.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the compressed archive")
	}
	return nil
}

// entries reads the manifest, and exactly the files that it lists.
func (r *Read) entries(archive *tar.Reader) error {
	text, err := next(archive, manifestPath, maxManifest)
	if err != nil {
		return err
	}
	var index manifest
	if err := json.Unmarshal(text, &index, json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%s: %w", manifestPath, strictjson.Readable(err))
	}
	if err := index.check(int64(len(text))); err != nil {
		return err
	}
	r.Entries, r.Notes = index.Entries, index.Notes
	for _, entry := range index.Entries {
		text, err := next(archive, entry.Path, maxEntry)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		if int64(len(text)) != entry.Size || hex.EncodeToString(sum[:]) != entry.SHA256 {
			return fmt.Errorf("%s differs from the manifest", entry.Path)
		}
		if err := r.place(entry, text); err != nil {
			return err
		}
	}
	if header, err := archive.Next(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = fmt.Errorf("%q is not in the manifest", header.Name)
		}
		return err
	}
	return r.inOrder()
}

// next reads the next file, which must be a regular one of this name.
func next(archive *tar.Reader, name string, most int64) ([]byte, error) {
	header, err := archive.Next()
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is missing", name)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no tar archive: %w", err)
	}
	if header.Name != name || header.Typeflag != tar.TypeReg ||
		header.Format&tar.FormatUSTAR == 0 && header.Format != tar.FormatUnknown || len(header.PAXRecords) > 0 {
		return nil, fmt.Errorf("want the file %s, found %q", name, header.Name)
	}
	if header.Size > most {
		return nil, fmt.Errorf("%s has %d bytes, and %d is the bound", name, header.Size, most)
	}
	return limit.ReadAll(archive, most, name)
}

// place stores an entry's content in the part that its path selects.
func (r *Read) place(entry Entry, text []byte) error {
	for _, one := range r.singles() {
		if one.path != entry.Path {
			continue
		}
		if *one.text != nil || entry.Name != "" || len(text) == 0 {
			return fmt.Errorf("%s is there twice, has a name, or is empty", entry.Path)
		}
		*one.text = text
		return nil
	}
	for _, many := range r.lists() {
		if entry.Path == many.path(len(*many.items)) {
			*many.items = append(*many.items, Item{Name: entry.Name, Source: entry.Source, Text: text})
			return nil
		}
	}
	return fmt.Errorf("%q is no file of a bundle of version %d, or not at its place", entry.Path, Version)
}

// inOrder refuses lists that are not in the order of the writer.
func (r *Read) inOrder() error {
	for _, many := range r.lists() {
		items, err := many.sorted()
		if err != nil {
			return err
		}
		for i, item := range items {
			if item.Name != (*many.items)[i].Name {
				return fmt.Errorf("%s are not in the order of their names", many.folder)
			}
		}
	}
	return nil
}

// check refuses a manifest of another format, and one with too many entries.
func (m *manifest) check(size int64) error {
	if m.Format != Format || m.Version != Version {
		return fmt.Errorf("%s: want format %s and version %d, found %q and %d: it was made by another program, or by a newer one", manifestPath, Format, Version, m.Format, m.Version)
	}
	if len(m.Entries) > maxEntries || len(m.Notes) > maxNotes || size > maxManifest {
		return fmt.Errorf("%s lists %d files and %d notes in %d bytes; at most %d, %d and %d may be", manifestPath,
			len(m.Entries), len(m.Notes), size, maxEntries, maxNotes, maxManifest)
	}
	var total int64
	for _, entry := range m.Entries {
		if entry.Size < 0 || entry.Size > maxEntry {
			return fmt.Errorf("%s has %d bytes, and %d is the bound", entry.Path, entry.Size, maxEntry)
		}
		total += entry.Size
	}
	if total > maxTotal {
		return fmt.Errorf("the files have %d bytes, and %d is the bound", total, maxTotal)
	}
	for _, note := range m.Notes {
		if strings.TrimSpace(note) == "" {
			return fmt.Errorf("%s: a note is empty", manifestPath)
		}
	}
	return nil
}
