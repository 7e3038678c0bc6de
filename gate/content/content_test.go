package content

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// documents is a fake registry with the given documents.
type documents struct {
	found map[image.Digest][]byte
}

func (d documents) Manifest(_ context.Context, _ image.Repository, reference string) (image.Descriptor, []byte, error) {
	digest, err := image.ParseDigest(reference)
	if err != nil {
		return image.Descriptor{}, nil, err
	}
	kind := image.MediaTypeManifest
	if digest == image.DigestOf(d.found[image.Digest{}]) {
		kind = image.MediaTypeIndex
	}
	return image.Descriptor{MediaType: kind, Digest: digest, Size: int64(len(d.found[digest]))}, d.found[digest], nil
}

func (d documents) Blob(_ context.Context, _ image.Repository, blob image.Descriptor, _ int64) ([]byte, error) {
	return d.found[blob.Digest], nil
}

func (d documents) add(text string) image.Digest {
	digest := image.DigestOf([]byte(text))
	d.found[digest] = []byte(text)
	return digest
}

// TestAmbiguousData: no policy reads a document of an image that a container runtime reads
// differently.
func TestAmbiguousData(t *testing.T) {
	const config, manifest, index = `{"config":{"User":"1"}}`, `"layers":[]`, `"annotations":{}`
	for _, c := range []struct {
		reason, config, manifest, index string // "" for no index
		fails                           bool
	}{
		{"an image", config, manifest, "", false},
		{"an index", config, manifest, index, false},
		{"a configuration with two users", `{"config":{"User":"1","user":"0"}}`, manifest, "", true},
		{"below an index", `{"config":{"User":"1","user":"0"}}`, manifest, index, true},
		{"a manifest with two lists of layers", config, `"layers":[],"Layers":[{"size":9}]`, "", true},
		{"below an index", config, `"layers":[],"layers":[{"size":9}]`, index, true},
		{"an index with two lists of annotations", config, manifest, `"annotations":{},"Annotations":{}`, true},
	} {
		registry := documents{found: map[image.Digest][]byte{}}
		configured := registry.add(c.config)
		digest := registry.add(fmt.Sprintf(`{"config":{"digest":%q,"size":%d},%s}`, configured, len(c.config), c.manifest))
		if c.index != "" {
			text := fmt.Sprintf(`{"manifests":[{"digest":%q,"platform":{"os":"linux","architecture":"amd64"}}],%s}`, digest, c.index)
			registry.found[image.Digest{}] = []byte(text)
			digest = registry.add(text)
		}
		pinned, err := image.MustParse("registry.example/app:1").Pin(image.Descriptor{Digest: digest})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []policy.Data{policy.DataOne, policy.DataEach} {
			data, err := Reader{Fetcher: registry, Parallel: 2}.Data(t.Context(), pinned, want)
			if (err != nil) != c.fails || err != nil && image.KindOf(err) != image.Corrupt {
				t.Errorf("%s (%s): got %v", c.reason, want, err)
			}
			if err == nil && (len(data.Children) != 1 || string(data.Children[0].Config) != c.config) {
				t.Errorf("%s (%s): got %+v", c.reason, want, data)
			}
		}
	}
}

// TestAmbiguousIndex: the children of an index that a container runtime reads differently are not
// known.
func TestAmbiguousIndex(t *testing.T) {
	for manifests, want := range map[string]int{
		`"manifests":[{"digest":%q}]`:                    1,
		`"manifests":[{"digest":%q}],"manifests":[]`:     -1,
		`"manifests":[{"digest":%q}],"Manifests":[{}]`:   -1,
		`"manifests":[{"digest":%q,"Platform":{}}]`:      -1,
		`"manifests":[{"digest":%q}],"annotations":null`: 1,
	} {
		registry := documents{found: map[image.Digest][]byte{}}
		text := fmt.Sprintf("{"+manifests+"}", image.DigestOf([]byte("child")))
		registry.found[image.Digest{}] = []byte(text)
		pinned, err := image.MustParse("registry.example/app:1").Pin(image.Descriptor{Digest: registry.add(text)})
		if err != nil {
			t.Fatal(err)
		}
		got := Reader{Fetcher: registry, Parallel: 1}.Index(t.Context(), pinned)
		if want < 0 && image.KindOf(got.Err) != image.Corrupt || want >= 0 && (got.Err != nil || len(got.Children) != want) {
			t.Errorf("%s: %d children, %v", manifests, len(got.Children), got.Err)
		}
	}
}

// TestUsualImage: one image of an index is read, the others where runtimes may choose them.
func TestUsualImage(t *testing.T) {
	const amd64, arm64, two, bare = `,"platform":{"os":"linux","architecture":"amd64"}`, `,"platform":{"os":"linux","architecture":"arm64"}`,
		`,"annotations":{"io.github.containers.compression.zstd":"true"},"platform":{"os":"linux","architecture":"amd64"}`, ""
	type child struct{ user, listed string }
	for _, c := range []struct {
		reason   string
		children []child
		want     string // the user; "" for none
		read     int
	}{
		{"one", []child{{"1", amd64}}, "1", 1},
		{"one of two platforms", []child{{"0", arm64}, {"1", amd64}}, "1", 1},
		{"none", nil, "", 0},
		{"two compressions of one image", []child{{"1", amd64}, {"1", two}}, "1", 2},
		{"another image in another compression", []child{{"1", amd64}, {"0", two}}, "", 2},
		{"without a platform, for another one", []child{{"1", arm64}, {"0", bare}}, "", 1},
	} {
		registry := counted{documents: documents{found: map[image.Digest][]byte{}}, read: new(atomic.Int32)}
		var listed []string
		for i, child := range c.children {
			configured := registry.add(fmt.Sprintf(`{"config":{"User":%q}}`, child.user))
			digest := registry.add(fmt.Sprintf(`{"config":{"digest":%q,"size":1},"annotations":{"n":"%d"}}`, configured, i))
			listed = append(listed, fmt.Sprintf(`{"digest":%q%s}`, digest, child.listed))
		}
		text := `{"manifests":[` + strings.Join(listed, ",") + `]}`
		registry.found[image.Digest{}] = []byte(text)
		pinned, err := image.MustParse("registry.example/app:1").Pin(image.Descriptor{Digest: registry.add(text)})
		if err != nil {
			t.Fatal(err)
		}
		got, index, err := Reader{Fetcher: registry, Parallel: 2}.Image(t.Context(), pinned)
		if (err != nil) != (c.want == "") || err != nil && image.KindOf(err) != image.Corrupt {
			t.Errorf("%s: %v", c.reason, err)
		}
		if err == nil && string(index) != text {
			t.Errorf("%s: index %s, want %s", c.reason, index, text)
		}
		if want := fmt.Sprintf(`{"config":{"User":%q}}`, c.want); err == nil && string(got.Config) != want {
			t.Errorf("%s: %s, want %s", c.reason, got.Config, want)
		}
		if got := int(registry.read.Load()); got != c.read {
			t.Errorf("%s: %d configurations are read, want %d", c.reason, got, c.read)
		}
	}
}

// counted counts the blobs that are read.
type counted struct {
	documents
	read *atomic.Int32
}

func (c counted) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, limit int64) ([]byte, error) {
	c.read.Add(1)
	return c.documents.Blob(ctx, repository, blob, limit)
}

// broken fails to return one document, or panics over it.
type broken struct {
	documents
	digest image.Digest
	panics bool
}

func (b broken) fail(digest image.Digest) error {
	if digest != b.digest {
		return nil
	}
	if b.panics {
		panic("a defect")
	}
	return &image.Error{Kind: image.Unavailable, Op: "read"}
}

func (b broken) Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error) {
	digest, err := image.ParseDigest(reference)
	if err == nil {
		err = b.fail(digest)
	}
	if err != nil {
		return image.Descriptor{}, nil, err
	}
	return b.documents.Manifest(ctx, repository, reference)
}

func (b broken) Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, limit int64) ([]byte, error) {
	if err := b.fail(blob.Digest); err != nil {
		return nil, err
	}
	return b.documents.Blob(ctx, repository, blob, limit)
}

// TestUnreadData: what cannot be read is an error, of whichever document.
func TestUnreadData(t *testing.T) {
	registry := documents{found: map[image.Digest][]byte{}}
	config := registry.add(`{}`)
	manifest := registry.add(fmt.Sprintf(`{"config":{"digest":%q,"size":2}}`, config))
	none := registry.add(`{"layers":[]}`)
	text := fmt.Sprintf(`{"manifests":[{"digest":%q}]}`, manifest)
	index := registry.add(text)
	registry.found[image.Digest{}] = []byte(text)
	for _, c := range []struct {
		reason        string
		of, cannot    image.Digest
		panics, fails bool
	}{
		{"all is read, of an index", index, image.Digest{}, false, false},
		{"all is read, of an image", manifest, image.Digest{}, false, false},
		{"the index is not", index, index, false, true},
		{"its image is not", index, manifest, false, true},
		{"the configuration of its image is not", index, config, false, true},
		{"a defect", index, config, true, true},
		{"the image is not", manifest, manifest, false, true},
		{"the configuration is not", manifest, config, false, true},
		{"a manifest without a configuration", none, index, false, true},
	} {
		pinned, err := image.MustParse("registry.example/app:1").Pin(image.Descriptor{Digest: c.of})
		if err != nil {
			t.Fatal(err)
		}
		reader := Reader{Fetcher: broken{documents: registry, digest: c.cannot, panics: c.panics}, Parallel: 2}
		if _, _, err := reader.Image(t.Context(), pinned); (err != nil) != c.fails {
			t.Errorf("%s: %v", c.reason, err)
		}
		if _, err := reader.Data(t.Context(), pinned, policy.DataEach); (err != nil) != c.fails {
			t.Errorf("%s, each: %v", c.reason, err)
		}
	}
}

// TestIndex: an index lists platforms, and neither the attestations of BuildKit nor too many.
func TestIndex(t *testing.T) {
	platform := func(os, architecture string) string {
		return fmt.Sprintf(`{"digest":%q,"platform":{"os":%q,"architecture":%q}}`, image.DigestOf([]byte(os)), os, architecture)
	}
	many := func(n int) []string { return slices.Repeat([]string{platform("linux", "amd64")}, n) }
	for _, c := range []struct {
		reason   string
		children []string
		want     int // -1: beyond a bound
	}{
		{"two platforms", []string{platform("linux", "amd64"), platform("windows", "amd64")}, 2},
		{"an attestation of BuildKit", []string{platform("linux", "amd64"), platform("unknown", "unknown")}, 1},
		{"an unknown system alone", []string{platform("unknown", "amd64")}, 1},
		{"an unknown architecture alone", []string{platform("linux", "unknown")}, 1},
		{"as many as may be", many(maxPlatforms), maxPlatforms},
		{"with attestations beside them", append(many(maxPlatforms), platform("unknown", "unknown")), maxPlatforms},
		{"too many", many(maxPlatforms + 1), -1},
	} {
		registry := documents{found: map[image.Digest][]byte{}}
		text := `{"manifests":[` + strings.Join(c.children, ",") + `]}`
		registry.found[image.Digest{}] = []byte(text)
		pinned, err := image.MustParse("registry.example/app:1").Pin(image.Descriptor{Digest: registry.add(text)})
		if err != nil {
			t.Fatal(err)
		}
		got := Reader{Fetcher: registry, Parallel: 1}.Index(t.Context(), pinned)
		if (image.KindOf(got.Err) == image.Bound) != (c.want < 0) || c.want >= 0 && len(got.Children) != c.want {
			t.Errorf("%s: %d, %v", c.reason, len(got.Children), got.Err)
		}
		registry.found[image.Digest{}] = nil
		if got := (Reader{Fetcher: registry, Parallel: 1}).Index(t.Context(), pinned); got.Err != nil || len(got.Children) != 0 || got.Pinned.Digest() != pinned.Digest() {
			t.Errorf("%s: of a manifest: %+v", c.reason, got)
		}
	}
}

// nested is a fake registry of indexes.
type nested map[image.Digest][]string

func (n nested) Manifest(_ context.Context, _ image.Repository, reference string) (image.Descriptor, []byte, error) {
	digest, err := image.ParseDigest(reference)
	children, ok := n[digest]
	if err != nil || !ok {
		return image.Descriptor{}, nil, &image.Error{Kind: image.NotFound, Op: "read"}
	}
	return image.Descriptor{MediaType: image.MediaTypeIndex, Digest: digest}, []byte(`{"manifests":[` + strings.Join(children, ",") + `]}`), nil
}

func (nested) Blob(context.Context, image.Repository, image.Descriptor, int64) ([]byte, error) {
	return nil, nil
}

// TestDescendants: the descendants of an index are those of nested indexes, too, in a bounded depth.
func TestDescendants(t *testing.T) {
	digest := func(i int) image.Digest { return image.DigestOf([]byte{byte(i)}) }
	listed := func(kind string, i int) string { return fmt.Sprintf(`{"mediaType":%q,"digest":%q}`, kind, digest(i)) }
	chain := func(n int) nested {
		all := nested{}
		for i := range n {
			all[digest(i)] = []string{listed(image.MediaTypeManifest, 100+i)}
			if i+1 < n {
				all[digest(i)] = append(all[digest(i)], listed(image.MediaTypeIndex, i+1))
			}
		}
		return all
	}
	for _, c := range []struct {
		reason   string
		registry nested
		want     int
		kind     image.Kind // of the error; "" for none
	}{
		{"one image", chain(1), 1, ""},
		{"an index in an index", chain(2), 3, ""},
		{"as deep as may be", chain(maxNested), 2*maxNested - 1, ""},
		{"deeper", chain(maxNested + 1), 2 * maxNested, image.Bound},
		{"an index in itself", nested{digest(0): {listed(image.MediaTypeIndex, 0)}}, maxNested, image.Bound},
		{"a child without a type is read", nested{digest(0): {listed("", 1)}, digest(1): {listed(image.MediaTypeManifest, 2)}}, 2, ""},
		{"a nested index is not there", nested{digest(0): {listed(image.MediaTypeIndex, 1)}}, 1, image.NotFound},
	} {
		pinned, err := image.MustParse("registry.example/app:1").Pin(image.Descriptor{Digest: digest(0)})
		if err != nil {
			t.Fatal(err)
		}
		got, err := Reader{Fetcher: c.registry, Parallel: 1}.Descendants(t.Context(), pinned)
		if len(got) != c.want || image.KindOf(err) != c.kind {
			t.Errorf("%s: %d, %v", c.reason, len(got), err)
		}
	}
}
