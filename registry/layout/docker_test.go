package layout_test

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ggcr "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	ggcrstatic "github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/layout"
)

// dockerSave writes an archive as older Dockers do, and returns it unpacked, too.
func dockerSave(t *testing.T, written string, saved v1.Image) (archive, folder string) {
	t.Helper()
	archive, folder = filepath.Join(t.TempDir(), "save.tar"), t.TempDir()
	tag, err := name.NewTag(written)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(archive, tag, saved); err != nil {
		t.Fatal(err)
	}
	unpack(t, archive, folder)
	return archive, folder
}

// unpack puts the files of an archive into a folder.
func unpack(t *testing.T, archive, folder string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for reader := tar.NewReader(file); ; {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, filepath.Base(header.Name)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// withLayout adds to an unpacked archive the layout that newer Dockers write beside
// it, and packs it.
func withLayout(t *testing.T, folder string, saved v1.Image, annotations map[string]string) string {
	t.Helper()
	path, err := ggcr.Write(folder, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(saved, ggcr.WithAnnotations(annotations)); err != nil {
		t.Fatal(err)
	}
	return pack(t, folder)
}

func packedImage(t *testing.T) v1.Image {
	t.Helper()
	made, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// unpackedImage has layers that are plain tar, as a store of unpacked layers
// writes them.
func unpackedImage(t *testing.T) v1.Image {
	t.Helper()
	made, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), ggcrstatic.NewLayer([]byte("a layer"), types.OCIUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestDockerSave: an archive with a layout is one; without a layout it has no digest that a
// registry has, and the error states that.
func TestDockerSave(t *testing.T) {
	ctx := t.Context()
	saved := packedImage(t)
	digest, err := saved.Digest()
	if err != nil {
		t.Fatal(err)
	}
	archive, folder := dockerSave(t, "reg.example/team/app:v1", saved)
	t.Run("an older one", func(t *testing.T) {
		for _, path := range []string{archive, folder} {
			_, err := layout.Open(path)
			wantKind(t, err, image.NotFound)
			for _, says := range []string{"older \"docker save\"", "not the manifest of the digest", "cosign save", "skopeo copy"} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
			if strings.Contains(err.Error(), "sha256:") {
				t.Errorf("it guesses a digest: %v", err)
			}
		}
	})
	t.Run("a folder of something else", func(t *testing.T) {
		other := t.TempDir()
		if err := os.WriteFile(filepath.Join(other, "manifest.json"), []byte(`{"name":"an app"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := layout.Open(other)
		wantKind(t, err, image.NotFound)
		if strings.Contains(err.Error(), "docker save") {
			t.Errorf("it takes it for an archive of Docker's: %v", err)
		}
	})
	t.Run("a newer one", func(t *testing.T) {
		path := withLayout(t, folder, saved, map[string]string{
			"io.containerd.image.name": "reg.example/team/app:v1", "org.opencontainers.image.ref.name": "v1",
		})
		l := openLayout(t, path)
		pinned, err := l.Resolve(ctx, image.MustParse("reg.example/team/app:v1"))
		if err != nil || pinned.Digest().String() != digest.String() {
			t.Errorf("%v, %v, want %s", pinned.Digest(), err, digest)
		}
		_, err = l.Resolve(ctx, image.MustParse("reg.example/team/app:v2"))
		wantKind(t, err, image.NotFound)
		if notes := l.Notes(); len(notes) > 0 {
			t.Errorf("it doubts %q", notes)
		}
	})
	t.Run("a newer one of a store of unpacked layers", func(t *testing.T) {
		plain := unpackedImage(t)
		_, folder := dockerSave(t, "reg.example/team/app:v1", plain)
		l := openLayout(t, withLayout(t, folder, plain, map[string]string{"io.containerd.image.name": "reg.example/team/app:v1"}))
		if notes := l.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "unpacked layers") {
			t.Errorf("notes %q", notes)
		}
	})
	t.Run("a layout of unpacked layers that is not Docker's", func(t *testing.T) {
		l := openLayout(t, withLayout(t, t.TempDir(), unpackedImage(t), nil))
		if notes := l.Notes(); len(notes) > 0 {
			t.Errorf("it doubts %q", notes)
		}
	})
}

// TestDockerSaveContradiction: "docker load" may use manifest.json, so it must name
// the same as index.json.
func TestDockerSaveContradiction(t *testing.T) {
	const v1Name, v2Name = "reg.example/team/app:v1", "reg.example/team/app:v2"
	good, other := packedImage(t), packedImage(t)
	both := func(t *testing.T, docker map[string]v1.Image) string {
		tagged := map[name.Tag]v1.Image{}
		for written, saved := range docker {
			tagged[must(name.NewTag(written))] = saved
		}
		folder := t.TempDir()
		archive := filepath.Join(folder, "save.tar")
		if err := tarball.MultiWriteToFile(archive, tagged); err != nil {
			t.Fatal(err)
		}
		unpack(t, archive, folder)
		if err := os.Remove(archive); err != nil {
			t.Fatal(err)
		}
		path, err := ggcr.Write(folder, empty.Index)
		if err != nil {
			t.Fatal(err)
		}
		for written, saved := range map[string]v1.Image{v1Name: good, v2Name: other} {
			if err := path.AppendImage(saved, ggcr.WithAnnotations(map[string]string{"io.containerd.image.name": written})); err != nil {
				t.Fatal(err)
			}
		}
		return folder
	}
	for _, row := range []struct {
		reason string
		docker map[string]v1.Image
		says   string // empty: it is opened
	}{
		{"both say the same", map[string]v1.Image{v1Name: good, v2Name: other}, ""},
		{"one image was saved", map[string]v1.Image{v1Name: good}, ""},
		{"a name that the index lacks", map[string]v1.Image{"reg.example/team/app:latest": good}, ""},
		{"another image", map[string]v1.Image{v1Name: packedImage(t)}, "names an image that index.json does not have"},
		{"the names are swapped", map[string]v1.Image{v1Name: other, v2Name: good}, "has another image as reg.example/team/app:v"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			folder := both(t, row.docker)
			for _, path := range []string{folder, pack(t, folder)} {
				l, err := layout.Open(path)
				if row.says == "" {
					if err != nil {
						t.Fatal(err)
					}
					if err := l.Close(); err != nil {
						t.Fatal(err)
					}
					continue
				}
				wantKind(t, err, image.Corrupt)
				if !strings.Contains(err.Error(), row.says) {
					t.Errorf("%q does not say %q", err, row.says)
				}
			}
		})
	}
	t.Run("with something behind it", func(t *testing.T) {
		folder := both(t, map[string]v1.Image{v1Name: packedImage(t)})
		path := filepath.Join(folder, "manifest.json")
		if err := os.WriteFile(path, append(must(os.ReadFile(path)), "\n{}"...), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := layout.Open(folder)
		wantKind(t, err, image.Corrupt)
	})
	t.Run("a configuration that is not there", func(t *testing.T) {
		folder := both(t, map[string]v1.Image{v1Name: good})
		if err := os.WriteFile(filepath.Join(folder, "manifest.json"), []byte(`[{"Config":"none.json"}]`), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := layout.Open(folder)
		wantKind(t, err, image.Corrupt)
		if !strings.Contains(err.Error(), "configuration that cannot be read") {
			t.Error(err)
		}
	})
	config := must(good.ConfigName()).String()
	for reason, manifest := range map[string]string{
		"first": `[{"Config":""},{"Config":%q}]`, "last": `[{"Config":%q},{"Config":""}]`, "nothing at all": `[null,{"Config":%q}]`,
	} {
		t.Run("an image without a configuration beside others, "+reason, func(t *testing.T) {
			folder := both(t, map[string]v1.Image{v1Name: good})
			path := filepath.Join(folder, "manifest.json")
			if err := os.WriteFile(path, fmt.Appendf(nil, manifest, config), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := layout.Open(folder)
			wantKind(t, err, image.Corrupt)
			if !strings.Contains(err.Error(), "without a configuration") {
				t.Error(err)
			}
			if err := os.WriteFile(path, fmt.Appendf(nil, `[{"Config":%q},{"Config":%q}]`, config, config), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := openLayout(t, folder).Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("another program's", func(t *testing.T) {
		folder := both(t, map[string]v1.Image{v1Name: good})
		if err := os.WriteFile(filepath.Join(folder, "manifest.json"), []byte(`[{"name":"an app"}]`), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := openLayout(t, folder).Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("behind a link", func(t *testing.T) {
		folder := both(t, map[string]v1.Image{v1Name: good})
		linked := filepath.Join(t.TempDir(), "linked.tar")
		file, err := os.Create(linked)
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewWriter(file)
		if err := errors.Join(os.Rename(filepath.Join(folder, "manifest.json"), filepath.Join(folder, "other.json")), archive.AddFS(os.DirFS(folder)),
			archive.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "manifest.json", Linkname: "other.json"}), archive.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
		_, err = layout.Open(linked)
		wantKind(t, err, image.Corrupt)
	})
}

// TestDockerNamesOfTheLayout: Docker's name for an image is that image's however the
// layout finds it by this name.
func TestDockerNamesOfTheLayout(t *testing.T) {
	const app, db = "reg.example/team/app:v1", "reg.example/team/db:v1"
	first, second := packedImage(t), packedImage(t)
	type names = map[string]string
	docker := func(name string) names {
		return names{"io.containerd.image.name": name, "org.opencontainers.image.ref.name": "v1"}
	}
	saved := names{"kind": "dev.cosignproject.cosign/image"}
	for _, row := range []struct {
		reason        string
		first, second names       // annotations in the index
		docker        [2]v1.Image // what Docker calls app, and db
		isRefused     bool
	}{
		{"two images of one tag", docker(app), docker(db), [2]v1.Image{first, second}, false},
		{"two images of one tag, swapped", docker(app), docker(db), [2]v1.Image{second, first}, true},
		{"what cosign saved, under its name", saved, nil, [2]v1.Image{first, nil}, false},
		{"what cosign saved, under a name that is another's", saved, nil, [2]v1.Image{second, nil}, true},
		{"what cosign saved, under two names", saved, nil, [2]v1.Image{first, first}, false},
		{"what cosign saved, and one of two names is another's", saved, nil, [2]v1.Image{first, second}, true},
		{"images without names", nil, nil, [2]v1.Image{second, first}, false},
	} {
		t.Run(row.reason, func(t *testing.T) {
			tagged := map[name.Tag]v1.Image{}
			for i, written := range []string{app, db} {
				if row.docker[i] != nil {
					tagged[must(name.NewTag(written))] = row.docker[i]
				}
			}
			folder := t.TempDir()
			archive := filepath.Join(t.TempDir(), "save.tar")
			if err := tarball.MultiWriteToFile(archive, tagged); err != nil {
				t.Fatal(err)
			}
			unpack(t, archive, folder)
			path := must(ggcr.Write(folder, empty.Index))
			if err := errors.Join(path.AppendImage(first, ggcr.WithAnnotations(row.first)), path.AppendImage(second, ggcr.WithAnnotations(row.second))); err != nil {
				t.Fatal(err)
			}
			opened, err := layout.Open(pack(t, folder))
			if !row.isRefused {
				if err != nil {
					t.Fatal(err)
				}
				_ = opened.Close()
				return
			}
			wantKind(t, err, image.Corrupt)
			if !strings.Contains(err.Error(), "has another image as reg.example/team/") {
				t.Error(err)
			}
		})
	}
}

// cosignSaved is a folder of an image that has no name, as cosign save writes it.
func cosignSaved(t *testing.T, saved v1.Image) string {
	t.Helper()
	return withLayoutIn(t, saved, map[string]string{"kind": "dev.cosignproject.cosign/image"})
}

func withLayoutIn(t *testing.T, saved v1.Image, annotations map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	path, err := ggcr.Write(folder, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(saved, ggcr.WithAnnotations(annotations)); err != nil {
		t.Fatal(err)
	}
	return folder
}

// TestLayouts reads several as one.
func TestLayouts(t *testing.T) {
	ctx := t.Context()
	first, second := packedImage(t), packedImage(t)
	digestOf := func(i v1.Image) string { d, _ := i.Digest(); return d.String() }
	app, db := repository(t, "reg.example/app"), repository(t, "reg.example/db")
	join := func(list ...*layout.Layout) *layout.Set {
		joined, err := layout.Join(list...)
		if err != nil {
			t.Fatal(err)
		}
		return joined
	}
	a, b := openLayout(t, cosignSaved(t, first)), openLayout(t, cosignSaved(t, second))
	named := join(a.Of(app), b.Of(db)).OnlyFullNames()
	for written, want := range map[string]string{
		"reg.example/app:v1": digestOf(first), "reg.example/db:v7": digestOf(second), "reg.example/db@" + digestOf(first): digestOf(first),
	} {
		pinned, err := named.Resolve(ctx, image.MustParse(written))
		if err != nil || pinned.Digest().String() != want {
			t.Errorf("%s: %v, %v, want %s", written, pinned.Digest(), err, want)
		}
		if described, err := named.Describe(ctx, pinned); err != nil || !described.Descriptor().IsComplete() {
			t.Errorf("%s: %+v, %v", written, described, err)
		}
	}
	_, err := named.Resolve(ctx, image.MustParse("reg.example/other:v1"))
	wantKind(t, err, image.NotFound)
	// Without their repositories, both match any image: that is a contradiction.
	_, err = join(a, b).Resolve(ctx, image.MustParse("reg.example/app:v1"))
	wantKind(t, err, image.Corrupt)
	// The same image twice is none.
	if pinned, err := join(a, openLayout(t, cosignSaved(t, first))).Resolve(ctx, image.MustParse("reg.example/app:v1")); err != nil || pinned.Digest().String() != digestOf(first) {
		t.Errorf("%v, %v", pinned, err)
	}
	config, _ := second.ConfigName()
	size := int64(len(must(second.RawConfigFile())))
	if body, err := named.Blob(ctx, app, image.Descriptor{Digest: image.MustParseDigest(config.String()), Size: size}, 1<<20); err != nil || int64(len(body)) != size {
		t.Errorf("blob of the second: %v", err)
	}
	if _, err := layout.Join(); err == nil {
		t.Error("none were joined")
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// TestLayoutsReferrers lists what refers to an image wherever it lies, each once.
func TestLayoutsReferrers(t *testing.T) {
	ctx := t.Context()
	s := save(t)
	other := t.TempDir()
	if err := os.CopyFS(other, os.DirFS(s.dir)); err != nil {
		t.Fatal(err)
	}
	joined, err := layout.Join(openLayout(t, cosignSaved(t, packedImage(t))), openLayout(t, s.dir), openLayout(t, other))
	if err != nil {
		t.Fatal(err)
	}
	repo, subject := repository(t, "reg.example/team/app"), image.MustParseDigest(s.image.String())
	list, err := joined.Referrers(ctx, repo, subject, nil)
	if got := digests(list); err != nil || !slices.Equal(got, []string{s.claim.String()}) {
		t.Errorf("referrers %v, %v", got, err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = joined.Referrers(gone, repo, subject, nil)
	wantKind(t, err, image.Unavailable)
	twice, err := layout.Join(openLayout(t, s.dir), openLayout(t, other))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := twice.Manifest(ctx, repo, "v2"); err != nil {
		t.Errorf("the same under a tag in both: %v", err)
	}
	// A layout with a damaged blob does not hide one that has it.
	damage := filepath.Join(s.dir, "blobs", "sha256", s.image.Hex)
	if err := os.Chmod(damage, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(damage, []byte("other"), fs.FileMode(0o600)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := joined.Manifest(ctx, repo, s.image.String()); err != nil {
		t.Errorf("manifest: %v", err)
	}
	// Nor does one with a damaged referrer hide that of another; alone it has none.
	damaged := t.TempDir()
	claim := filepath.Join(damaged, "blobs", "sha256", s.claim.Hex)
	if err := errors.Join(os.CopyFS(damaged, os.DirFS(other)), os.Chmod(claim, 0o600), os.WriteFile(claim, []byte("other"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for want, layouts := range map[string][]*layout.Layout{
		s.claim.String(): {openLayout(t, damaged), openLayout(t, other)}, "": {openLayout(t, damaged)},
	} {
		list, err := must(layout.Join(layouts...)).Referrers(ctx, repo, subject, nil)
		if got := strings.Join(digests(list), " "); got != want {
			t.Errorf("referrers beside a damaged one: %q, want %q", got, want)
		}
		wantKind(t, err, image.Corrupt)
	}
	// By a tag it does: it might have another manifest under this tag.
	_, _, err = twice.Manifest(ctx, repo, "v2")
	wantKind(t, err, image.Corrupt)
	alone, err := layout.Join(openLayout(t, cosignSaved(t, packedImage(t))), openLayout(t, s.dir))
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = alone.Manifest(ctx, repo, s.image.String())
	wantKind(t, err, image.Corrupt)
}
