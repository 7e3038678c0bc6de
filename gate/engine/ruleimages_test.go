package engine_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/quaymaster/quaymaster/gate"
	"github.com/quaymaster/quaymaster/gate/engine"
	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/policy"
)

// archive is a registry with the documents of one image.
type archive struct {
	gate.Session
	tagged   image.Digest
	found    map[image.Digest][]byte
	isSingle bool // the tag is of a manifest
}

// Open implements gate.Registries.
func (a *archive) Open(context.Context, gate.Access, image.Repository) (gate.Session, error) {
	return a, nil
}

// Resolve implements gate.Session.
func (a *archive) Resolve(_ context.Context, ref image.Ref) (image.Pinned, error) {
	return ref.Pin(image.Descriptor{Digest: a.tagged})
}

// Manifest implements gate.Session.
func (a *archive) Manifest(_ context.Context, _ image.Repository, reference string) (image.Descriptor, []byte, error) {
	digest, err := image.ParseDigest(reference)
	kind := image.MediaTypeManifest
	if digest == a.tagged && !a.isSingle {
		kind = image.MediaTypeIndex
	}
	return image.Descriptor{MediaType: kind, Digest: digest}, a.found[digest], err
}

// Blob implements gate.Session.
func (a *archive) Blob(_ context.Context, _ image.Repository, blob image.Descriptor, _ int64) ([]byte, error) {
	return a.found[blob.Digest], nil
}

func (a *archive) add(text string) image.Digest {
	digest := image.DigestOf([]byte(text))
	a.found[digest] = []byte(text)
	return digest
}

// TestAmbiguousImages: the context of a rule has no data that a container runtime reads differently.
func TestAmbiguousImages(t *testing.T) {
	const config, manifest, index = `{"config":{"User":"1"}}`, `"layers":[]`, `"annotations":{}`
	for _, c := range []struct {
		reason, config, manifest, index string
		fails                           bool
	}{
		{"an image", config, manifest, index, false},
		{"a configuration with two users", `{"config":{"User":"1","user":"0"}}`, manifest, index, true},
		{"a manifest with two lists of layers", config, `"layers":[],"Layers":[{"size":9}]`, index, true},
		{"an index with two lists", config, manifest, `"Manifests":[]`, true},
	} {
		a := &archive{found: map[image.Digest][]byte{}}
		configured := a.add(c.config)
		digest := a.add(fmt.Sprintf(`{"config":{"digest":%q,"size":%d},%s}`, configured, len(c.config), c.manifest))
		a.tagged = a.add(fmt.Sprintf(`{"manifests":[{"digest":%q,"platform":{"os":"linux","architecture":"amd64"}}],%s}`, digest, c.index))
		var images engine.RuleImages
		images.Use(gate.Config{Registries: a})
		data, err := images.ImageData(t.Context(), "registry.example/app:1", policy.Credentials{})
		if (err != nil) != c.fails || err != nil && image.KindOf(err) != image.Corrupt {
			t.Errorf("%s: got %v, %v", c.reason, data, err)
		}
		if err != nil {
			continue
		}
		listed, _ := data["imageIndex"].(map[string]any)
		if manifests, _ := listed["manifests"].([]any); len(manifests) != 1 {
			t.Errorf("%s: the index is %v", c.reason, data["imageIndex"])
		}
		a.tagged, a.isSingle = digest, true
		data, err = images.ImageData(t.Context(), "registry.example/app:1", policy.Credentials{})
		if _, has := data["imageIndex"]; err != nil || has {
			t.Errorf("%s, without an index: %v, %v", c.reason, data, err)
		}
	}
}
