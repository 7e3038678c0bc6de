package compose_test

import (
	"archive/tar"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"github.com/quaymaster/quaymaster/deploy/image/compose"
)

// programs builds a program of a line for both platforms, as files.
func programs(t testing.TB) []compose.Binary {
	t.Helper()
	folder := t.TempDir()
	check(t, os.WriteFile(filepath.Join(folder, "go.mod"), []byte("module quay.test/quaymaster\n\ngo 1.26\n"), 0o600))
	check(t, os.WriteFile(filepath.Join(folder, "main.go"), []byte("package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"ahoy\\n\") }\n"), 0o600))
	var built []compose.Binary
	for _, architecture := range []string{"amd64", "arm64"} {
		file := filepath.Join(folder, "quaymaster_linux_"+architecture)
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, ".")
		build.Dir = folder
		build.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+architecture, "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
		if output, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, output)
		}
		built = append(built, compose.Binary{Platform: "linux/" + architecture, File: file})
	}
	return built
}

func description() compose.Description {
	return compose.Description{
		Program: "quaymaster", Title: "prints ahoy", Version: "v1.2.3", Revision: "0123456789abcdef0123456789abcdef01234567",
		Created: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC),
	}
}

func write(t testing.TB, d compose.Description, from []compose.Binary) (folder, digest string) {
	t.Helper()
	made, err := compose.New(d, from)
	check(t, err)
	folder = filepath.Join(t.TempDir(), "layout")
	check(t, made.Write(folder))
	h, err := made.Digest()
	check(t, err)
	return folder, h.String()
}

// contents is every file of a folder.
func contents(t *testing.T, folder string) string {
	t.Helper()
	var all strings.Builder
	check(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %x\n", name, content)
		return err
	}))
	return all.String()
}

// TestSameBytes composes one image in many ways, and images with one thing changed.
func TestSameBytes(t *testing.T) {
	built := programs(t)
	folder, digest := write(t, description(), built)
	whole := contents(t, folder)
	elsewhere := func(t *testing.T, change func([]byte) []byte) []compose.Binary {
		var moved []compose.Binary
		for _, b := range built {
			content, err := os.ReadFile(b.File)
			check(t, err)
			file := filepath.Join(t.TempDir(), "another name")
			check(t, os.WriteFile(file, change(content), 0o600))
			long := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
			check(t, os.Chtimes(file, long, long))
			moved = append(moved, compose.Binary{Platform: b.Platform, File: file})
		}
		return moved
	}
	same := func(content []byte) []byte { return content }
	for _, row := range []struct {
		reason string
		change func(*compose.Description)
		from   func(t *testing.T) []compose.Binary
		equal  bool
	}{
		{"again", nil, func(*testing.T) []compose.Binary { return built }, true},
		{"the platforms the other way round", nil, func(*testing.T) []compose.Binary {
			turned := slices.Clone(built)
			slices.Reverse(turned)
			return turned
		}, true},
		{"programs in other folders, of other times and rights", nil, func(t *testing.T) []compose.Binary { return elsewhere(t, same) }, true},
		{"the same time in another zone", func(d *compose.Description) { d.Created = d.Created.In(time.FixedZone("east", 3600)) }, func(*testing.T) []compose.Binary { return built }, true},
		{"one byte more in the programs", nil, func(t *testing.T) []compose.Binary {
			return elsewhere(t, func(content []byte) []byte { return append(slices.Clone(content), 0) })
		}, false},
		{"another version", func(d *compose.Description) { d.Version = "v1.2.4" }, func(*testing.T) []compose.Binary { return built }, false},
		{"another commit", func(d *compose.Description) { d.Revision = strings.Repeat("f", 40) }, func(*testing.T) []compose.Binary { return built }, false},
		{"a second later", func(d *compose.Description) { d.Created = d.Created.Add(time.Second) }, func(*testing.T) []compose.Binary { return built }, false},
		{"one platform less", nil, func(*testing.T) []compose.Binary { return built[:1] }, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			d := description()
			if row.change != nil {
				row.change(&d)
			}
			folder, got := write(t, d, row.from(t))
			if equal := got == digest; equal != row.equal {
				t.Errorf("%s and %s: equal is %v, want %v", got, digest, equal, row.equal)
			}
			if row.equal && contents(t, folder) != whole {
				t.Error("the layouts differ though the digests are equal: so do the bills")
			}
		})
	}
}

// entries has what an image has, in order, and the content of each file.
func entries(t *testing.T, image v1.Image) (names []string, files map[string][]byte) {
	t.Helper()
	files = map[string][]byte{}
	extracted := mutate.Extract(image)
	defer func() { check(t, extracted.Close()) }()
	for r := tar.NewReader(extracted); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names, files
		}
		check(t, err)
		content, err := io.ReadAll(r)
		check(t, err)
		names = append(names, fmt.Sprintf("%04o %d:%d %s", h.Mode, h.Uid, h.Gid, strings.TrimSuffix(h.Name, "/")))
		files[h.Name] = content
	}
}

// images are those of a layout, by platform.
func images(t *testing.T, folder string) map[string]v1.Image {
	t.Helper()
	at, err := layout.ImageIndexFromPath(folder)
	check(t, err)
	listed, err := at.IndexManifest()
	check(t, err)
	index, err := at.ImageIndex(listed.Manifests[0].Digest)
	check(t, err)
	manifest, err := index.IndexManifest()
	check(t, err)
	found := map[string]v1.Image{}
	for _, d := range manifest.Manifests {
		image, err := index.Image(d.Digest)
		check(t, err)
		found[d.Platform.String()] = image
	}
	return found
}

// TestContents lists all that an image has: no shell, no package manager, one program.
func TestContents(t *testing.T) {
	folder, _ := write(t, description(), programs(t))
	all := images(t, folder)
	if len(all) != 2 || all["linux/arm64"] == nil {
		t.Fatalf("platforms %v", all)
	}
	names, files := entries(t, all["linux/amd64"])
	slices.Sort(names)
	want := []string{
		"0644 0:0 etc/group", "0644 0:0 etc/passwd", "0644 0:0 etc/ssl/certs/ca-certificates.crt",
		"0700 65532:65532 home/nonroot", "0755 0:0 etc", "0755 0:0 etc/ssl", "0755 0:0 etc/ssl/certs", "0755 0:0 home",
		"0755 0:0 usr", "0755 0:0 usr/bin", "0755 0:0 usr/bin/quaymaster", "1777 0:0 tmp",
	}
	if !slices.Equal(names, want) {
		t.Errorf("it has %q,\nwant %q", names, want)
	}
	if !strings.Contains(string(files["etc/passwd"]), "nonroot:x:65532:65532:") {
		t.Errorf("accounts:\n%s", files["etc/passwd"])
	}
	config, err := all["linux/amd64"].ConfigFile()
	check(t, err)
	if c := config.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/quaymaster"}) || c.Cmd != nil ||
		c.Labels["org.opencontainers.image.version"] != "v1.2.3" || c.Labels["org.opencontainers.image.licenses"] != "Apache-2.0" ||
		c.Labels["org.opencontainers.image.source"] != compose.Source || len(c.Labels["org.opencontainers.image.revision"]) != 40 {
		t.Errorf("configuration %+v", c)
	}
	authorities(t, files["etc/ssl/certs/ca-certificates.crt"])
}

// authorities wants a pool that a public registry's certificate can be proved by.
func authorities(t *testing.T, content []byte) {
	t.Helper()
	found, count := false, 0
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(block.Bytes)
		check(t, err)
		count++
		found = found || c.Subject.CommonName == "ISRG Root X1"
	}
	if !found || count < 100 {
		t.Errorf("%d authorities, one that everybody knows: %v", count, found)
	}
}

// TestRuns runs the entry point from the layer, as a container would.
func TestRuns(t *testing.T) {
	folder, _ := write(t, description(), programs(t))
	_, files := entries(t, images(t, folder)["linux/"+runtime.GOARCH])
	file := filepath.Join(t.TempDir(), "quaymaster")
	check(t, os.WriteFile(file, files["usr/bin/quaymaster"], 0o700))
	command := exec.CommandContext(t.Context(), file)
	command.Env = []string{}
	if output, err := command.CombinedOutput(); err != nil || string(output) != "ahoy\n" {
		t.Errorf("it printed %q, %v", output, err)
	}
}

// TestBuilt runs the real program from the layer of the real image, with the image's root and user
// where this may be done. check.sh passes the images it built.
func TestBuilt(t *testing.T) {
	folder := os.Getenv("QUAYMASTER_IMAGES")
	if folder == "" {
		t.Skip("builds for minutes: make images-check runs it")
	}
	layout := filepath.Join(folder, "quaymaster")
	if _, err := os.Stat(layout); errors.Is(err, fs.ErrNotExist) {
		t.Skip("another program was built")
	}
	image := images(t, layout)["linux/"+runtime.GOARCH]
	if image == nil {
		t.Skip("not built for linux/" + runtime.GOARCH)
	}
	_, files := entries(t, image)
	root := t.TempDir()
	check(t, os.Chmod(filepath.Dir(root), 0o755))
	check(t, os.Chmod(root, 0o755))
	file := filepath.Join(root, "quaymaster")
	check(t, os.WriteFile(file, files["usr/bin/quaymaster"], 0o755))
	command := exec.CommandContext(t.Context(), file, "version")
	command.Env = []string{}
	if os.Getuid() == 0 {
		command.Path, command.Dir = "/quaymaster", "/"
		command.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Credential: &syscall.Credential{Uid: compose.Nonroot, Gid: compose.Nonroot}}
	}
	if output, err := command.CombinedOutput(); err != nil || !strings.HasPrefix(string(output), "quaymaster v") {
		t.Errorf("it printed %q, %v", output, err)
	}
}

func TestRefused(t *testing.T) {
	built := programs(t)
	text := filepath.Join(t.TempDir(), "text")
	check(t, os.WriteFile(text, []byte("no program"), 0o600))
	for _, row := range []struct {
		reason string
		change func(*compose.Description)
		from   []compose.Binary
		says   string
	}{
		{"no version", func(d *compose.Description) { d.Version = "" }, built, "without a version"},
		{"no time: the build's would be another each time", func(d *compose.Description) { d.Created = time.Time{} }, built, "without a time"},
		{"a path for a name", func(d *compose.Description) { d.Program = "../etc/passwd" }, built, "name of a file"},
		{"another program's name", func(d *compose.Description) { d.Program = "quaymaster-node" }, built, "should be quaymaster-node"},
		{"no platform", nil, nil, "no platform"},
		{"one platform twice", nil, []compose.Binary{built[0], built[0]}, "two programs for"},
		{"a program of another platform", nil, []compose.Binary{{Platform: "linux/arm64", File: built[0].File}}, "linux/amd64"},
		{"no container's system", nil, []compose.Binary{{Platform: "darwin/arm64", File: built[1].File}}, "want linux/ARCHITECTURE"},
		{"no program", nil, []compose.Binary{{Platform: "linux/amd64", File: text}}, "toolchain"},
		{"a folder", nil, []compose.Binary{{Platform: "linux/amd64", File: t.TempDir()}}, "want a file"},
	} {
		d := description()
		if row.change != nil {
			row.change(&d)
		}
		if _, err := compose.New(d, row.from); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want an error with %q", row.reason, err, row.says)
		}
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ExampleNew() {
	_, err := compose.New(compose.Description{Program: "quaymaster", Version: "v1.2.3"}, nil)
	fmt.Println(err)
	// Output: an image without a time: name the source's
}
