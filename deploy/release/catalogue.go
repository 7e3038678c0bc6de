package main

import (
	"bufio"
	"embed"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"text/template"
)

//go:embed templates
var templates embed.FS

// Values in quoted template fields must not contain quotes.
var (
	releases  = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)
	checksums = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// release is the input of the templates.
type release struct {
	// Version has the leading v, Number does not.
	Version, Number string
	sums            map[string]string
}

// platforms are those of the command line; each has an archive.
var platforms = []string{"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"}

// read parses SHA256SUMS: lines of a checksum, two spaces and a file. Other files than the command
// line's archives are other parts of the release.
func read(version string, sums io.Reader) (*release, error) {
	if !releases.MatchString(version) {
		return nil, fmt.Errorf("--version %q: want a release such as v1.2.3", version)
	}
	r := &release{Version: version, Number: strings.TrimPrefix(version, "v"), sums: map[string]string{}}
	lines := bufio.NewScanner(sums)
	for lines.Scan() {
		sum, file, ok := strings.Cut(lines.Text(), "  ")
		if !ok || !checksums.MatchString(sum) {
			return nil, fmt.Errorf("checksums: %q is not SUM, two spaces, FILE", lines.Text())
		}
		if _, twice := r.sums[file]; twice {
			return nil, fmt.Errorf("checksums: %s is there twice", file)
		}
		r.sums[file] = sum
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the checksums: %w", err)
	}
	var missing []error
	for _, platform := range platforms {
		if _, ok := r.sums[r.archive(platform)]; !ok {
			missing = append(missing, fmt.Errorf("checksums: %s is not there", r.archive(platform)))
		}
	}
	return r, errors.Join(missing...)
}

func (r *release) archive(platform string) string {
	return "quaymaster_" + r.Version + "_" + platform + ".tar.gz"
}

// URL returns the URL of the archive for a platform.
func (r *release) URL(platform string) string {
	return "https://github.com/quaymaster/quaymaster/releases/download/" + r.Version + "/" + r.archive(platform)
}

// Sum returns the checksum of the archive for a platform.
func (r *release) Sum(platform string) string { return r.sums[r.archive(platform)] }

func (r *release) write(out io.Writer, name string) error {
	parsed, err := template.ParseFS(templates, "templates/"+name)
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := parsed.Execute(out, r); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}
