package layout_test

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ggcr "github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/layout"
)

// saved is a layout on disk and its content.
type saved struct {
	dir          string
	image, claim v1.Hash
	layer        image.Descriptor
}

// save writes a layout of an image, a referrer of it and a legacy signature,
// as go-containerregistry does.
func save(t *testing.T) saved {
	t.Helper()
	s := saved{dir: t.TempDir()}
	path, err := ggcr.Write(s.dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := random.Image(1000, 1)
	if err != nil {
		t.Fatal(err)
	}
	descriptor, err := partial.Descriptor(pushed)
	if err != nil {
		t.Fatal(err)
	}
	s.image = descriptor.Digest
	claim := mutate.Subject(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), wantedType), *descriptor).(v1.Image)
	s.claim, _ = claim.Digest()
	name := func(v string) ggcr.Option {
		return ggcr.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": v})
	}
	signature := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	for _, err := range []error{
		path.AppendImage(pushed, name("v1")),
		path.AppendImage(pushed, name("reg.example/team/app:v2")),
		path.AppendImage(claim),
		path.AppendImage(signature, name("sha256-"+s.image.Hex+".sig")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	layers, _ := pushed.Layers()
	digest, _ := layers[0].Digest()
	size, _ := layers[0].Size()
	s.layer = image.Descriptor{Digest: image.MustParseDigest(digest.String()), Size: size}
	return s
}

// pack writes dir as a tar archive.
func pack(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layout.tar")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	writer := tar.NewWriter(file)
	defer func() { _ = writer.Close() }()
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		relative, _ := filepath.Rel(dir, name)
		if err := writer.WriteHeader(&tar.Header{Name: "./" + filepath.ToSlash(relative), Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = writer.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func openLayout(t *testing.T, path string) *layout.Layout {
	t.Helper()
	opened, err := layout.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = opened.Close() })
	return opened
}

func TestLayout(t *testing.T) {
	s := save(t)
	for kind, path := range map[string]string{"directory": s.dir, "archive": pack(t, s.dir)} {
		t.Run(kind, func(t *testing.T) {
			l := openLayout(t, path)
			ctx, repo := t.Context(), repository(t, "reg.example/team/app")
			for _, written := range []string{"reg.example/team/app:v1", "reg.example/team/app:v2", "other.example/x:v1"} {
				pinned, err := l.Resolve(ctx, image.MustParse(written))
				if err != nil || pinned.Digest().String() != s.image.String() || !pinned.Descriptor().IsComplete() {
					t.Errorf("%s: %+v, %v", written, pinned.Descriptor(), err)
				}
			}
			byDigest, err := l.Resolve(ctx, image.MustParse("reg.example/team/app@"+s.image.String()))
			if err != nil {
				t.Fatal(err)
			}
			if described, err := l.Describe(ctx, byDigest); err != nil || !described.Descriptor().IsComplete() {
				t.Errorf("%+v, %v", described.Descriptor(), err)
			}
			for _, absent := range []string{"reg.example/team/app:v3", "other.example/team/app:v2"} {
				_, err := l.Resolve(ctx, image.MustParse(absent))
				wantKind(t, err, image.NotFound)
				if !strings.Contains(err.Error(), "v1") {
					t.Errorf("%q does not list the tags", err)
				}
			}
			if _, body, err := l.Manifest(ctx, repo, s.image.String()); err != nil || image.DigestOf(body).String() != s.image.String() {
				t.Errorf("manifest: %v", err)
			}
			_, _, err = l.Manifest(ctx, repo, image.DigestOf([]byte("none")).String())
			wantKind(t, err, image.NotFound)
			if _, _, err := l.Manifest(ctx, repo, "sha256-"+s.image.Hex+".sig"); err != nil {
				t.Errorf("legacy signature: %v", err)
			}
			_, _, err = l.Manifest(ctx, repo, "sha256-"+s.image.Hex+".att")
			wantKind(t, err, image.NotFound)
			if body, err := l.Blob(ctx, repo, s.layer, 1<<20); err != nil || int64(len(body)) != s.layer.Size {
				t.Errorf("blob: %v", err)
			}
			_, err = l.Blob(ctx, repo, s.layer, s.layer.Size-1)
			wantKind(t, err, image.Bound)
			longer := s.layer
			longer.Size++
			_, err = l.Blob(ctx, repo, longer, 1<<20)
			wantKind(t, err, image.Corrupt)
			subject := image.MustParseDigest(s.image.String())
			for _, types := range [][]string{nil, {wantedType}} {
				list, err := l.Referrers(ctx, repo, subject, types)
				if got := digests(list); err != nil || !slices.Equal(got, []string{s.claim.String()}) {
					t.Errorf("referrers %v, %v", got, err)
				}
			}
			if list, err := l.Referrers(ctx, repo, subject, []string{otherType}); err != nil || len(list) != 0 {
				t.Errorf("referrers of another type: %v, %v", list, err)
			}
			if list, err := l.Referrers(ctx, repo, image.MustParseDigest(s.claim.String()), nil); err != nil || len(list) != 0 {
				t.Errorf("referrers of another subject: %v, %v", list, err)
			}
		})
	}
}

// TestUnlistedReferrers: a referrer that is among the blobs and not in index.json, as of a bundle that
// cosign 3 saved, is found in a folder and in an archive. Blobs of other kinds refer to nothing.
func TestUnlistedReferrers(t *testing.T) {
	s := save(t)
	subject := image.MustParseDigest(s.image.String())
	unlisted := func(text string) string {
		digest := image.DigestOf([]byte(text))
		if err := os.WriteFile(filepath.Join(s.dir, "blobs", "sha256", digest.Hex()), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return digest.String()
	}
	manifest := func(kind, subject string) string {
		return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"artifactType":%q,"config":{"mediaType":"application/vnd.oci.empty.v1+json"},"layers":[],"subject":{"digest":%q}}`, kind, wantedType, subject)
	}
	want := []string{s.claim.String(), unlisted(manifest(image.MediaTypeManifest, subject.String()))}
	untyped := strings.Replace(manifest("x", subject.String()), `"mediaType":"x",`, "", 1)
	want = append(want, unlisted(untyped), unlisted(" \r\n\t"+untyped))
	linked := untyped + "\n"
	if err := os.WriteFile(filepath.Join(s.dir, "blobs", "linked"), []byte(linked), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../linked", filepath.Join(s.dir, "blobs", "sha256", image.DigestOf([]byte(linked)).Hex())); err != nil {
		t.Skip("this system has no symbolic links")
	}
	want = append(want, image.DigestOf([]byte(linked)).String())
	unlisted("x" + untyped)
	unlisted(strings.Replace(untyped, `"config"`, `"other"`, 1))
	unlisted(manifest("application/json", subject.String()))
	unlisted(manifest(image.MediaTypeManifest, s.claim.String()))
	unlisted(`{"subject":{"digest":"` + subject.String() + `"}}`)
	unlisted("not JSON")
	for name, path := range map[string]string{"folder": s.dir, "archive": pack(t, s.dir)} {
		opened := openLayout(t, path)
		list, err := opened.Referrers(t.Context(), repository(t, "reg.example/team/app"), subject, nil)
		got := digests(list)
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v: %v", name, got, want, err)
		}
	}
	if err := os.WriteFile(filepath.Join(s.dir, "blobs", "sha256", strings.TrimPrefix(want[0], "sha256:")), []byte(manifest(image.MediaTypeManifest, subject.String())+" "), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := openLayout(t, s.dir).Referrers(t.Context(), repository(t, "reg.example/team/app"), subject, nil); err == nil || len(list) != len(want)-1 {
		t.Errorf("a changed one: %v, %v", list, err)
	}
}

func TestLayoutWithOtherContent(t *testing.T) {
	s := save(t)
	file := filepath.Join(s.dir, "blobs", "sha256", s.image.Hex)
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(body, ' '), 0o600); err != nil {
		t.Fatal(err)
	}
	l := openLayout(t, s.dir)
	_, err = l.Resolve(t.Context(), image.MustParse("app:v1"))
	wantKind(t, err, image.Corrupt)
	if err := os.WriteFile(filepath.Join(s.dir, "blobs", "sha256", s.layer.Digest.Hex()), make([]byte, s.layer.Size), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = l.Blob(t.Context(), image.Repository{}, s.layer, 1<<20)
	wantKind(t, err, image.Corrupt)
}

func TestLayoutStaysInItsDirectory(t *testing.T) {
	s := save(t)
	secret := filepath.Join(t.TempDir(), "secret")
	content := []byte(`{"schemaVersion":2,"config":{},"layers":[]}`)
	if err := os.WriteFile(secret, content, 0o600); err != nil {
		t.Fatal(err)
	}
	digest := image.DigestOf(content)
	if err := os.Symlink(secret, filepath.Join(s.dir, "blobs", "sha256", digest.Hex())); err != nil {
		t.Skip("this system has no symbolic links")
	}
	l := openLayout(t, s.dir)
	if _, body, err := l.Manifest(t.Context(), image.Repository{}, digest.String()); err == nil {
		t.Errorf("read %q through a link", body)
	}
	for _, reference := range []string{"sha256:../../x", "../../secret"} {
		_, _, err := l.Manifest(t.Context(), image.Repository{}, reference)
		wantKind(t, err, image.NotFound)
	}
}

// index writes a layout that has nothing but this index.json.
func index(t *testing.T, version, body string) string {
	t.Helper()
	dir := t.TempDir()
	if version != "" {
		if err := os.WriteFile(filepath.Join(dir, "oci-layout"), fmt.Appendf(nil, `{"imageLayoutVersion":%q}`, version), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if body != "" {
		if err := os.WriteFile(filepath.Join(dir, "index.json"), []byte(body), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpenLayoutRefuses(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("no archive"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		reason, path string
		kind         image.Kind
	}{
		{"nothing is there", filepath.Join(t.TempDir(), "none"), image.NotFound},
		{"an empty directory", t.TempDir(), image.NotFound},
		{"a file that is no archive", text, image.Corrupt},
		{"an archive without a layout", pack(t, filepath.Dir(text)), image.NotFound},
		{"neither a file nor a folder", os.DevNull, image.Unavailable},
		{"without an index", index(t, "1.0.0", ""), image.NotFound},
		{"another version", index(t, "2.0.0", `{}`), image.Corrupt},
		{"an index that is no JSON", index(t, "1.0.0", `{`), image.Corrupt},
		{"an index that is too large", index(t, "1.0.0", strings.Repeat(" ", 5<<20)), image.Bound},
		{"an index of too many manifests", index(t, "1.0.0", `{"manifests":[`+strings.Repeat(`{},`, 5000)+`{}]}`), image.Bound},
	}
	for _, test := range tests {
		t.Run(test.reason, func(t *testing.T) {
			_, err := layout.Open(test.path)
			wantKind(t, err, test.kind)
			if strings.Contains(err.Error(), "docker save") {
				t.Errorf("it takes it for an archive of Docker's: %v", err)
			}
			if test.kind == image.NotFound && !strings.Contains(err.Error(), "that holds oci-layout and index.json") {
				t.Errorf("no hint: %v", err)
			}
		})
	}
	folder := index(t, "1.0.0", "")
	if err := os.Mkdir(filepath.Join(folder, "index.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := layout.Open(folder); err == nil || !strings.Contains(err.Error(), "index.json is not a regular file") {
		t.Errorf("an index that is a folder: %v", err)
	}
	l := openLayout(t, index(t, "1.0.0", `{"manifests":[]}`))
	_, err := l.Resolve(t.Context(), image.MustParse("app:v1"))
	wantKind(t, err, image.NotFound)
}

func TestLayoutWithATagTwice(t *testing.T) {
	entry := func(content string) map[string]any {
		return map[string]any{"digest": image.DigestOf([]byte(content)), "annotations": map[string]string{"org.opencontainers.image.ref.name": "v1"}}
	}
	body, err := json.Marshal(map[string]any{"manifests": []any{entry("a"), entry("b")}})
	if err != nil {
		t.Fatal(err)
	}
	l := openLayout(t, index(t, "1.0.0", string(body)))
	_, err = l.Resolve(t.Context(), image.MustParse("app:v1"))
	wantKind(t, err, image.Corrupt)
}

func TestLayoutOfCosignSave(t *testing.T) {
	dir := t.TempDir()
	path, err := ggcr.Write(dir, empty.Index)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := pushed.Digest()
	kind := func(v string) ggcr.Option {
		return ggcr.WithAnnotations(map[string]string{"kind": "dev.cosignproject.cosign/" + v})
	}
	if err := path.AppendImage(pushed, kind("image")); err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(mutate.MediaType(empty.Image, types.OCIManifestSchema1), kind("sigs")); err != nil {
		t.Fatal(err)
	}
	l := openLayout(t, dir)
	pinned, err := l.Resolve(t.Context(), image.MustParse("app:v1"))
	if err != nil || pinned.Digest().String() != digest.String() {
		t.Fatalf("%v, %v", pinned, err)
	}
	if _, _, err := l.Manifest(t.Context(), pinned.Repository(), "sha256-"+digest.Hex+".sig"); err != nil {
		t.Errorf("signatures: %v", err)
	}
	for _, tag := range []string{"sha256-" + digest.Hex + ".att", "sha256-" + digest.Hex, "sha256-" + strings.Repeat("0", 64) + ".sig"} {
		_, _, err := l.Manifest(t.Context(), pinned.Repository(), tag)
		wantKind(t, err, image.NotFound)
	}
}
