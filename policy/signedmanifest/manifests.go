package signedmanifest

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"

	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/workload"
)

// Manifests parses a content: YAML or JSON, or an archive with files of them. It refuses what parsers
// read differently, as repeated names, and everything beyond the bounds, as a whole: a manifest next to
// one that cannot be read is not used.
func Manifests(content []byte) ([]workload.Object, error) {
	files := [][]byte{content}
	if bytes.HasPrefix(content, []byte{0x1f, 0x8b}) {
		archive, err := gunzip(content, MaxArchive, "the archive")
		if err != nil {
			return nil, err
		}
		files, err = unpack(archive)
		if err != nil {
			return nil, err
		}
	}
	var all []workload.Object
	for _, file := range files {
		read, err := workload.Read(bytes.NewReader(file), "the signed content")
		if err != nil {
			return nil, err
		}
		all = append(all, read...)
		if len(all) > MaxManifests {
			return nil, fmt.Errorf("the signed content has more than %d manifests (MaxManifests)", MaxManifests)
		}
	}
	return all, nil
}

// unpack returns the files of an archive that are manifests by their names.
func unpack(archive []byte) ([][]byte, error) {
	reader := tar.NewReader(bytes.NewReader(archive))
	var files [][]byte
	room := int64(MaxArchive) // of all files together: a sparse file is larger than its archive
	for n := 0; ; n++ {
		header, err := reader.Next()
		switch {
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, fmt.Errorf("the archive: %w", err)
		case n == MaxFiles:
			return nil, fmt.Errorf("the archive has more than %d files (MaxFiles)", MaxFiles)
		case header.Typeflag == tar.TypeDir || header.Typeflag == tar.TypeXGlobalHeader: // git archive writes a comment
			continue
		case header.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("the archive has %q, which is neither a file nor a folder", header.Name)
		}
		if extension := path.Ext(header.Name); extension != ".yaml" && extension != ".yml" {
			continue
		}
		file, err := limit.ReadAll(reader, room, "the rest of the archive")
		if err != nil {
			return nil, fmt.Errorf("the archive: %w", err)
		}
		room -= int64(len(file))
		files = append(files, file)
	}
}
