package evaluate

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// documents is a fake registry with the given documents.
type documents struct {
	Registry
	found map[image.Digest][]byte
}

func (documents) Scope() string { return "" }

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
		pinned, err := parse(t, "registry.example/app:1").Pin(image.Descriptor{Digest: digest})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []policy.Data{policy.DataOne, policy.DataEach} {
			read := content{Evaluator: newEvaluator(t, time.Now), registry: registry}
			data, err := read.readData(t.Context(), pinned, want)
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
		pinned, err := parse(t, "registry.example/app:1").Pin(image.Descriptor{Digest: registry.add(text)})
		if err != nil {
			t.Fatal(err)
		}
		read := content{Evaluator: newEvaluator(t, time.Now), registry: registry}
		got := read.index(t.Context(), pinned)
		if want < 0 && image.KindOf(got.err) != image.Corrupt || want >= 0 && (got.err != nil || len(got.children) != want) {
			t.Errorf("%s: %d children, %v", manifests, len(got.children), got.err)
		}
	}
}
