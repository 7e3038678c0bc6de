package layout

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// failing fails to open as many files as it is set to.
type failing struct {
	counted
	left *int
}

func (f failing) Open(name string) (io.ReadCloser, error) {
	if *f.left > 0 {
		*f.left--
		return nil, errors.New("the disk does not answer")
	}
	return f.counted.Open(name)
}

// manifestOf is a referrer of a subject, which no index.json lists.
func manifestOf(subject image.Digest) string {
	return fmt.Sprintf(`{"config":{},"layers":[],"subject":{"digest":%q}}`, subject)
}

// TestUnlistedAmongLayers: of layers the beginning alone is read, so that many are no reason to find
// nothing. As many objects of JSON exceed the bound, once.
func TestUnlistedAmongLayers(t *testing.T) {
	subject := image.DigestOf([]byte("subject"))
	for _, test := range []struct {
		reason, start string
		kind          image.Kind
	}{
		{"layers", "\x1f\x8b", ""},
		{"objects of JSON", " {", image.Bound},
	} {
		files := counted{inMemory{}, map[string]int{}}
		files.put(manifestOf(subject))
		large := test.start + strings.Repeat("x", content.MaxManifest-len(test.start))
		for i := range maxUnlisted/content.MaxManifest + 1 {
			files.inMemory[fmt.Sprintf("blobs/sha256/%064x", i)] = large
		}
		layout := &Layout{unlisted: newUnlisted(), files: files}
		for range 2 {
			list, err := layout.Referrers(t.Context(), image.Repository{}, subject, nil)
			if image.KindOf(err) != test.kind || err == nil && len(list) != 1 {
				t.Errorf("%s: %v, %v", test.reason, list, err)
			}
		}
		if n := files.opened[fmt.Sprintf("blobs/sha256/%064x", 0)]; n != 1 {
			t.Errorf("%s: searched %d times", test.reason, n)
		}
	}
}

// TestUnlistedAfterFailures: a file that cannot be read now is an error now, next to what is found; a
// later search finds it. A caller waits and searches no longer than its context allows.
func TestUnlistedAfterFailures(t *testing.T) {
	subject, failures := image.DigestOf([]byte("subject")), 1
	files := failing{counted{inMemory{}, map[string]int{}}, &failures}
	files.put(manifestOf(subject))
	files.put(manifestOf(subject) + " ")
	layout := &Layout{unlisted: newUnlisted(), files: files}
	if list, err := layout.Referrers(t.Context(), image.Repository{}, subject, nil); len(list) != 1 || image.KindOf(err) != image.Unavailable {
		t.Errorf("while a file cannot be read: %v, %v", list, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	opened := len(files.opened)
	if list, err := layout.Referrers(ended, image.Repository{}, subject, nil); len(list) != 0 || image.KindOf(err) != image.Unavailable || len(files.opened) != opened {
		t.Errorf("after the context's end: %v, %v", list, err)
	}
	layout.unlisted.turn <- struct{}{}
	if _, err := layout.unlisted.about(ended, subject, layout); !errors.Is(err, context.Canceled) {
		t.Errorf("while another caller searches: %v", err)
	}
	<-layout.unlisted.turn
	for range 2 {
		if list, err := layout.Referrers(t.Context(), image.Repository{}, subject, nil); len(list) != 2 || err != nil {
			t.Errorf("later: %v, %v", list, err)
		}
	}
}

// layoutOf writes a layout with an image, and returns its folder, the digest of the image and a referrer
// of it that index.json does not list.
func layoutOf(t *testing.T) (folder string, subject image.Digest, referrer string) {
	t.Helper()
	folder = t.TempDir()
	manifest := `{"schemaVersion":2,"config":{},"layers":[]}`
	subject = image.DigestOf([]byte(manifest))
	for name, text := range map[string]string{
		"oci-layout":                    `{"imageLayoutVersion":"1.0.0"}`,
		"index.json":                    fmt.Sprintf(`{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":%q,"size":%d}]}`, subject, len(manifest)),
		"blobs/sha256/" + subject.Hex(): manifest,
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, subject, manifestOf(subject)
}

// TestUnlistedLinks: a blob that is a link is followed within the layout, and cannot be read where the
// link leads elsewhere or nowhere.
func TestUnlistedLinks(t *testing.T) {
	for _, c := range []struct {
		reason, target string // of the link; a relative one is within the layout
		list           int
		kind           image.Kind
	}{
		{"within the layout", "../../copy", 1, ""},
		{"outside", "/outside", 0, image.Unavailable},
		{"to nothing", "../../nothing", 0, image.Unavailable},
	} {
		folder, subject, referrer := layoutOf(t)
		target := c.target
		if strings.HasPrefix(target, "/") {
			target = filepath.Join(t.TempDir(), "copy")
			if err := os.WriteFile(target, []byte(referrer), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(folder, "copy"), []byte(referrer), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(folder, "blobs/sha256", image.DigestOf([]byte(referrer)).Hex())); err != nil {
			t.Fatal(err)
		}
		opened, err := Open(folder)
		if err != nil {
			t.Fatal(err)
		}
		list, err := opened.Referrers(t.Context(), image.Repository{}, subject, nil)
		if len(list) != c.list || (err == nil) != (c.kind == "") {
			t.Errorf("%s: %d referrers, %v", c.reason, len(list), err)
		}
	}
}

// TestUnlistedLinksOfArchives: links of an archive are not followed, so that such a blob cannot be read.
func TestUnlistedLinksOfArchives(t *testing.T) {
	for _, kind := range []byte{tar.TypeReg, tar.TypeLink, tar.TypeSymlink} {
		folder, subject, referrer := layoutOf(t)
		path := filepath.Join(t.TempDir(), "layout.tar")
		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := tar.NewWriter(file)
		put := func(header tar.Header, text string) {
			header.Mode, header.Size = 0o600, int64(len(text))
			if err := w.WriteHeader(&header); err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(w, text); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.AddFS(os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
		name := "blobs/sha256/" + image.DigestOf([]byte(referrer)).Hex()
		if kind == tar.TypeReg {
			put(tar.Header{Name: name, Typeflag: kind}, referrer)
		} else {
			put(tar.Header{Name: "copy", Typeflag: tar.TypeReg}, referrer)
			put(tar.Header{Name: name, Typeflag: kind, Linkname: "copy"}, "")
		}
		if err := errors.Join(w.Close(), file.Close()); err != nil {
			t.Fatal(err)
		}
		opened, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		list, err := opened.Referrers(t.Context(), image.Repository{}, subject, nil)
		if isFile := kind == tar.TypeReg; isFile != (err == nil) || isFile != (len(list) == 1) {
			t.Errorf("type %c: %d referrers, %v", kind, len(list), err)
		}
	}
}
