package compose_test

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/quaymaster/quaymaster/deploy/image/compose"
)

// TestPush wants the image by its digest, a bill for it and for each platform, and
// no tag.
func TestPush(t *testing.T) {
	for _, row := range []struct {
		reason    string
		referrers bool
	}{{"with a referrers API", true}, {"without one: under its fallback tag", false}} {
		t.Run(row.reason, func(t *testing.T) {
			server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(row.referrers)))
			defer server.Close()
			folder, digest := write(t, description(), programs(t))
			repository := strings.TrimPrefix(server.URL, "http://") + "/quay/quaymaster"
			pushed, err := compose.Push(t.Context(), folder, repository)
			check(t, err)
			if pushed != repository+"@"+digest {
				t.Fatalf("pushed %s, want %s", pushed, digest)
			}
			at, err := name.NewDigest(pushed)
			check(t, err)
			index, err := remote.Index(at)
			check(t, err)
			manifest, err := index.IndexManifest()
			check(t, err)
			subjects := []name.Digest{at}
			for _, d := range manifest.Manifests {
				subjects = append(subjects, at.Context().Digest(d.Digest.String()))
			}
			for _, subject := range subjects {
				bills(t, subject)
			}
			tags, err := remote.List(at.Context())
			check(t, err)
			for _, tag := range tags {
				if !strings.HasPrefix(tag, "sha256-") {
					t.Errorf("it is tagged %s before it was verified", tag)
				}
			}
		})
	}
}

// bills requires one bill of materials that refers to a manifest, and describes it.
func bills(t *testing.T, subject name.Digest) {
	t.Helper()
	referrers, err := remote.Referrers(subject)
	check(t, err)
	listed, err := referrers.IndexManifest()
	check(t, err)
	if len(listed.Manifests) != 1 {
		t.Fatalf("%s: referrers %+v", subject, listed.Manifests)
	}
	artifact, err := remote.Image(subject.Context().Digest(listed.Manifests[0].Digest.String()))
	check(t, err)
	// Not the descriptor's type: this registry gives the configuration's for it.
	manifest, err := artifact.Manifest()
	check(t, err)
	if manifest.ArtifactType != "application/spdx+json" || manifest.Subject.Digest.String() != subject.DigestStr() {
		t.Errorf("%s: referrer %+v", subject, manifest)
	}
	layers, err := artifact.Layers()
	check(t, err)
	content, err := layers[0].Compressed()
	check(t, err)
	text, err := io.ReadAll(content)
	check(t, err)
	if !strings.Contains(string(text), `"name": "quaymaster@`+subject.DigestStr()+`"`) {
		t.Errorf("the bill of %s describes another image:\n%.300s", subject, text)
	}
}

func TestPushRefused(t *testing.T) {
	folder, _ := write(t, description(), programs(t))
	spoilt := filepath.Join(t.TempDir(), "spoilt")
	check(t, os.CopyFS(spoilt, os.DirFS(folder)))
	blobs, err := filepath.Glob(filepath.Join(spoilt, "blobs", "sha256", "*"))
	check(t, err)
	for _, blob := range blobs {
		content, err := os.ReadFile(blob)
		check(t, err)
		if len(content) > 100_000 { // a layer
			content[50_000] ^= 1
			check(t, os.WriteFile(blob, content, 0o600))
		}
	}
	nothing := filepath.Join(t.TempDir(), "nothing")
	_, err = layout.Write(nothing, empty.Index)
	check(t, err)
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	log.SetOutput(io.Discard) // the registry logs its refusals there too
	defer log.SetOutput(os.Stderr)
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for _, row := range []struct{ reason, folder, to, says string }{
		{"a byte of a layer was changed", spoilt, host + "/quaymaster", "push "},
		{"an empty layout", nothing, host + "/quaymaster", "want the layout of one image"},
		{"no layout", t.TempDir(), host + "/quaymaster", "read "},
		{"no repository", folder, "UPPER", "push to"},
	} {
		if _, err := compose.Push(t.Context(), row.folder, row.to); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want %q", row.reason, err, row.says)
		}
	}
}
