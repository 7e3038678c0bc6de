package bill

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Document describes the subject of a bill of materials.
type Document struct {
	// Name, Version, Source and Licence are the image's.
	Name, Version, Source, Licence string
	// Digest is that of the image or the index: sha256:...
	Digest string
	// Created is the time of the source.
	Created time.Time
	// Binaries are the programs in the image.
	Binaries []Binary
}

// Binary is a Go program for a platform.
type Binary struct {
	Platform, File string
}

// Write reads the programs and returns the bill of materials.
func Write(d Document) ([]byte, error) {
	if d.Name == "" || d.Digest == "" || len(d.Binaries) == 0 {
		return nil, errors.New("a bill of materials needs a name, a digest and programs")
	}
	w := &writer{document: d, known: map[string]bool{}}
	w.image()
	for _, b := range d.Binaries {
		if err := w.binary(b); err != nil {
			return nil, fmt.Errorf("bill of %s: %w", b.File, err)
		}
	}
	content, err := json.MarshalIndent(w.spdx, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("write the bill of %s: %w", d.Name, err)
	}
	return append(content, '\n'), nil
}

// writer collects packages, each once.
type writer struct {
	document Document
	spdx     spdx
	known    map[string]bool
}

const imageID = "SPDXRef-Image"

func (w *writer) image() {
	d := &w.document
	w.spdx = spdx{
		SPDXID: "SPDXRef-DOCUMENT", Version: "SPDX-2.3", DataLicense: "CC0-1.0",
		Name:      d.Name + "@" + d.Digest,
		Namespace: d.Source + "/spdx/" + d.Name + "/" + strings.ReplaceAll(d.Digest, ":", "-"),
		Creation:  creation{Created: d.Created.UTC().Format(time.RFC3339), Creators: []string{"Tool: quaymaster-deploy-image"}},
		Describes: []string{imageID},
	}
	algorithm, value, _ := strings.Cut(d.Digest, ":")
	w.add(imageID, packaged{
		ID: imageID, Name: d.Name, Version: d.Version, Location: "NOASSERTION", Concluded: d.Licence, Declared: d.Licence,
		Purpose: "CONTAINER", Checksums: []checksum{{strings.ToUpper(algorithm), value}},
	}, "SPDXRef-DOCUMENT", "DESCRIBES")
}

// add adds a package, unless it is present, and its relationship to another one.
func (w *writer) add(id string, p packaged, from, how string) {
	if !w.known[id] {
		w.known[id] = true
		w.spdx.Packages = append(w.spdx.Packages, p)
	}
	w.spdx.Relationships = append(w.spdx.Relationships, relationship{from, how, id})
}

// binary adds a program and the modules in it.
func (w *writer) binary(b Binary) error {
	info, err := buildinfo.ReadFile(b.File)
	if err != nil {
		return fmt.Errorf("read what the toolchain wrote into it: %w", err)
	}
	d := &w.document
	if built := platform(info); built != b.Platform || path.Base(info.Path) != d.Name {
		return fmt.Errorf("it is %s for %s, and should be %s for %s", path.Base(info.Path), built, d.Name, b.Platform)
	}
	sum, err := hash(b.File)
	if err != nil {
		return err
	}
	program := "SPDXRef-Program-" + strings.ReplaceAll(b.Platform, "/", "-")
	w.add(program, packaged{
		ID: program, Name: path.Base(info.Path) + " (" + b.Platform + ")", Version: d.Version, Location: "NOASSERTION",
		Concluded: d.Licence, Declared: d.Licence, Purpose: "APPLICATION", Checksums: []checksum{{"SHA256", sum}},
		References: []reference{golang(info.Main.Path, d.Version)},
	}, imageID, "CONTAINS")
	w.add("SPDXRef-Go", packaged{
		ID: "SPDXRef-Go", Name: "stdlib", Version: info.GoVersion, Location: "NOASSERTION", Concluded: "NOASSERTION", Declared: "BSD-3-Clause",
		Purpose: "LIBRARY", References: []reference{golang("stdlib", strings.TrimPrefix(info.GoVersion, "go"))},
	}, program, "DEPENDS_ON")
	modules := slices.Clone(info.Deps)
	slices.SortFunc(modules, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	for _, m := range modules {
		if m.Replace != nil {
			m = m.Replace
		}
		if err := w.module(m, program); err != nil {
			return err
		}
	}
	return nil
}

// platform returns the platform that a program was built for.
func platform(info *buildinfo.BuildInfo) string {
	var system, architecture string
	for _, setting := range info.Settings {
		switch setting.Key {
		case "GOOS":
			system = setting.Value
		case "GOARCH":
			architecture = setting.Value
		}
	}
	return system + "/" + architecture
}

func (w *writer) module(m *debug.Module, program string) error {
	id := "SPDXRef-Module-" + identifier(m.Path+"-"+m.Version)
	p := packaged{
		ID: id, Name: m.Path, Version: m.Version, Location: "NOASSERTION",
		Concluded: "NOASSERTION", Declared: "NOASSERTION", Purpose: "LIBRARY", References: []reference{golang(m.Path, m.Version)},
	}
	// A checksum in go.sum covers the module's files (golang.org/x/mod/sumdb/dirhash), not the
	// archive. SPDX has no specific term for that.
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		raw, err := base64.StdEncoding.DecodeString(sum)
		if err != nil {
			return fmt.Errorf("sum of %s: %w", m.Path, err)
		}
		p.Checksums = []checksum{{"SHA256", hex.EncodeToString(raw)}}
		p.Comment = "The checksum is go.sum's h1."
	}
	w.add(id, p, program, "DEPENDS_ON")
	return nil
}

// identifier replaces all characters of a name except letters, digits, - and . and appends a part
// of the name's hash, so that identifiers are distinct.
func identifier(of string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' {
			return r
		}
		return '-'
	}, of)
	sum := sha256.Sum256([]byte(of))
	return plain + "-" + hex.EncodeToString(sum[:4])
}

// golang returns a package URL (https://github.com/package-url/purl-spec).
func golang(module, version string) reference {
	return reference{"PACKAGE-MANAGER", "purl", "pkg:golang/" + strings.ToLower(module) + "@" + strings.ReplaceAll(version, "+", "%2B")}
}

func hash(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // read only: no data can be lost
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read %s: %w", file, err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
