package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/file"
)

// content is an entry with its content.
type content struct {
	Entry
	text []byte
}

// Write writes a bundle. Equal contents produce equal bytes with the same version of this
// program.
func Write(w io.Writer, c *Contents) error {
	files, err := c.files()
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	index := manifest{Format: Format, Version: Version, Notes: c.Notes, Entries: []Entry{}}
	for _, f := range files {
		index.Entries = append(index.Entries, f.Entry)
	}
	text, err := json.Marshal(index)
	if err == nil {
		err = index.check(int64(len(text)))
	}
	if err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	files = append([]content{{Entry{Path: manifestPath}, text}}, files...)
	var packed bytes.Buffer
	if err := pack(&packed, files); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	if packed.Len() > MaxFile {
		return fmt.Errorf("write bundle: it would have %d bytes, and %d is the bound", packed.Len(), MaxFile)
	}
	if _, err := w.Write(packed.Bytes()); err != nil {
		return fmt.Errorf("write bundle: %w", err)
	}
	return nil
}

// WriteFile writes a bundle by Write into a file, which it replaces only by a bundle that Open
// reads, and returns its digest.
func WriteFile(path string, c *Contents) (image.Digest, error) {
	var packed bytes.Buffer
	if err := Write(&packed, c); err != nil {
		return image.Digest{}, err
	}
	read, err := Open(bytes.NewReader(packed.Bytes()), image.Digest{})
	if err != nil {
		return image.Digest{}, err
	}
	return read.Digest, file.Replace(path, packed.Bytes())
}

// files returns the contents as files.
func (c *Contents) files() ([]content, error) {
	var files []content
	add := func(path string, item Item) {
		sum := sha256.Sum256(item.Text)
		files = append(files, content{Entry{
			Path: path, Size: int64(len(item.Text)), SHA256: hex.EncodeToString(sum[:]), Name: item.Name, Source: item.Source,
		}, item.Text})
	}
	for _, one := range c.singles() {
		if len(*one.text) > 0 {
			add(one.path, Item{Text: *one.text})
		}
	}
	for _, many := range c.lists() {
		items, err := many.sorted()
		if err != nil {
			return nil, err
		}
		for place, item := range items {
			add(many.path(place), item)
		}
	}
	return files, nil
}

func pack(w io.Writer, files []content) error {
	packed, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(packed)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.Path, Size: int64(len(f.text)), Mode: fileMode, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.text); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return packed.Close()
}

// fileMode is the mode of every entry.
const fileMode = 0o644
