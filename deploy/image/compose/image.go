package compose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quaymaster/quaymaster/deploy/image/bill"
)

// maxProgram bounds a program, in bytes; the current ones have 117 MiB.
const maxProgram = 256 << 20

// Description is the metadata of an image.
type Description struct {
	// Program is the name of the file that the image runs.
	Program string
	// Title is a one-line description.
	Title string
	// Version is a release, such as v1.2.3; Revision is the source commit.
	Version, Revision string
	// Created is the time of every file and of the image. For a reproducible build it must be the
	// time of the source, not of the build.
	Created time.Time
}

// Source is the repository of the source code, and Licence its licence.
const (
	Source  = "https://github.com/quaymaster/quaymaster"
	Licence = "Apache-2.0"
)

// annotations returns those of the image specification.
func (d *Description) annotations() map[string]string {
	all := map[string]string{
		"org.opencontainers.image.created":       d.Created.UTC().Format(time.RFC3339),
		"org.opencontainers.image.description":   d.Title,
		"org.opencontainers.image.documentation": Source + "/tree/main/docs",
		"org.opencontainers.image.licenses":      Licence,
		"org.opencontainers.image.source":        Source,
		"org.opencontainers.image.title":         d.Program,
		"org.opencontainers.image.url":           Source,
		"org.opencontainers.image.version":       d.Version,
	}
	if d.Revision != "" {
		all["org.opencontainers.image.revision"] = d.Revision
	}
	return all
}

func (d *Description) check() error {
	switch {
	case d.Program == "" || d.Program != path.Base(d.Program):
		return fmt.Errorf("program %q: want the name of a file", d.Program)
	case d.Version == "":
		return errors.New("an image without a version: name one")
	case d.Created.IsZero():
		return errors.New("an image without a time: name the source's")
	}
	return nil
}

// Binary is a program for a platform.
type Binary struct {
	// Platform has the form linux/arm64.
	Platform string
	// File is the path of the program.
	File string
}

// Index is an image for several platforms, with its bills of materials.
type Index struct {
	index v1.ImageIndex
	bills []artifact
	whole []byte
}

// Digest returns the digest of the index.
func (i *Index) Digest() (v1.Hash, error) { return i.index.Digest() }

// Bill returns the bill of materials of all platforms together: SPDX 2.3 in JSON.
func (i *Index) Bill() []byte { return bytes.Clone(i.whole) }

// New composes an image. The order of binaries does not matter.
func New(d Description, binaries []Binary) (*Index, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	if len(binaries) == 0 {
		return nil, errors.New("an image for no platform")
	}
	binaries = slices.Clone(binaries)
	slices.SortFunc(binaries, func(a, b Binary) int { return strings.Compare(a.Platform, b.Platform) })
	made := &Index{index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	document := bill.Document{Name: d.Program, Version: d.Version, Source: Source, Licence: Licence, Created: d.Created}
	for n, b := range binaries {
		if n > 0 && binaries[n-1].Platform == b.Platform {
			return nil, fmt.Errorf("two programs for %s", b.Platform)
		}
		if err := made.add(&d, b, document); err != nil {
			return nil, fmt.Errorf("%s for %s: %w", d.Program, b.Platform, err)
		}
		document.Binaries = append(document.Binaries, bill.Binary{Platform: b.Platform, File: b.File})
	}
	made.index = mutate.Annotations(made.index, d.annotations()).(v1.ImageIndex)
	described, err := describe(made.index)
	if err != nil {
		return nil, err
	}
	made.whole, err = made.attach(described, document)
	return made, err
}

// add composes the image of a platform, and its bill.
func (i *Index) add(d *Description, b Binary, document bill.Document) error {
	platform, err := v1.ParsePlatform(b.Platform)
	if err != nil || platform.OS != "linux" || platform.Architecture == "" {
		return fmt.Errorf("platform %q: want linux/ARCHITECTURE", b.Platform)
	}
	image, err := compose(d, b.File, platform)
	if err != nil {
		return err
	}
	described, err := describe(image)
	if err != nil {
		return err
	}
	described.Platform = platform
	i.index = mutate.AppendManifests(i.index, mutate.IndexAddendum{Add: image, Descriptor: described})
	document.Binaries = []bill.Binary{{Platform: b.Platform, File: b.File}}
	described.Platform = nil
	_, err = i.attach(described, document)
	return err
}

// compose makes the image of a platform.
func compose(d *Description, file string, platform *v1.Platform) (v1.Image, error) {
	program, err := read(file)
	if err != nil {
		return nil, err
	}
	entrypoint := "usr/bin/" + d.Program
	below, err := layer(base(), d.Created)
	if err != nil {
		return nil, err
	}
	above, err := layer([]entry{
		{name: "usr/", mode: 0o755}, {name: "usr/bin/", mode: 0o755},
		{name: entrypoint, mode: 0o755, content: program},
	}, d.Created)
	if err != nil {
		return nil, err
	}
	created := v1.Time{Time: d.Created.UTC()}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{
		Architecture: platform.Architecture, OS: platform.OS, Variant: platform.Variant, Created: created,
		Config: v1.Config{
			Entrypoint: []string{"/" + entrypoint},
			User:       fmt.Sprintf("%d:%d", Nonroot, Nonroot),
			WorkingDir: "/" + home,
			Env:        []string{"PATH=/usr/bin", "HOME=/" + home, "SSL_CERT_FILE=/" + certificates},
			Labels:     d.annotations(),
		},
		RootFS: v1.RootFS{Type: "layers"},
	})
	if err != nil {
		return nil, err
	}
	image, err = mutate.Append(image,
		mutate.Addendum{Layer: below, History: v1.History{Created: created, CreatedBy: "deploy/image: accounts, certificate authorities, /tmp"}},
		mutate.Addendum{Layer: above, History: v1.History{Created: created, CreatedBy: "deploy/image: " + d.Program + " " + d.Version}},
	)
	if err != nil {
		return nil, err
	}
	return mutate.Annotations(image, d.annotations()).(v1.Image), nil
}

func layer(entries []entry, at time.Time) (v1.Layer, error) {
	content, err := archive(entries, at)
	if err != nil {
		return nil, err
	}
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
}

func read(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() == 0 || info.Size() > maxProgram {
		return nil, fmt.Errorf("%s: want a file of 1 to %d bytes", file, maxProgram)
	}
	return os.ReadFile(file)
}
