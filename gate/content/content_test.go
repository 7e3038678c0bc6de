package content

import (
	"context"
	"fmt"
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
		got, err := Reader{Fetcher: registry, Parallel: 2}.Image(t.Context(), pinned)
		if (err != nil) != (c.want == "") || err != nil && image.KindOf(err) != image.Corrupt {
			t.Errorf("%s: %v", c.reason, err)
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
