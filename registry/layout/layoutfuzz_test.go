package layout_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/registry/layout"
)

// FuzzLayout: no file of an OCI layout or of a "docker save" archive makes the reader panic
// or leave its folder, and a manifest has the digest under which it is returned.
func FuzzLayout(f *testing.F) {
	manifest := []byte(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"digest":"sha256:` + fmt.Sprintf("%064d", 0) + `"},"layers":[]}`)
	digest := image.DigestOf(manifest)
	index := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":%q,"digest":%q,"size":%d,"annotations":{"org.opencontainers.image.ref.name":"v1"}}]}`,
		image.MediaTypeManifest, digest, len(manifest))
	f.Add([]byte(`{"imageLayoutVersion":"1.0.0"}`), []byte(index), []byte(nil), manifest)
	f.Add([]byte(`{"imageLayoutVersion":"1.0.0"}`), []byte(`{"manifests":[{"digest":"sha256:../../../etc/passwd"},null]}`), []byte(`[{"Config":"../../etc/passwd"}]`), manifest)
	f.Add([]byte(nil), []byte(nil), []byte(`[{"Config":"config.json","RepoTags":["app:v1"],"Layers":["l/layer.tar"]}]`), []byte(`{}`))
	repository, err := image.ParseRepository("reg.example/app")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, marker, index, docker, blob []byte) {
		folder := t.TempDir()
		files := map[string][]byte{
			"oci-layout": marker, "index.json": index, "manifest.json": docker, "config.json": blob,
			filepath.Join("blobs", "sha256", image.DigestOf(blob).Hex()): blob,
		}
		for name, content := range files {
			path := filepath.Join(folder, name)
			if len(content) == 0 {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		layout, err := layout.Open(folder)
		if err != nil {
			return
		}
		defer func() { _ = layout.Close() }()
		for _, reference := range append(listed(index), "v1", image.DigestOf(blob).String()) {
			found, body, err := layout.Manifest(t.Context(), repository, reference)
			if err == nil && !found.Digest.Matches(body) {
				t.Errorf("%s has other bytes than its digest: %q", found.Digest, body)
			}
		}
	})
}

// listed are the digests in an index, as they are written.
func listed(index []byte) (all []string) {
	var parsed struct{ Manifests []struct{ Digest string } }
	if json.Unmarshal(index, &parsed) != nil {
		return nil
	}
	for _, one := range parsed.Manifests[:min(len(parsed.Manifests), 10)] {
		all = append(all, one.Digest)
	}
	return all
}
