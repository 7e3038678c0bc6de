package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/quaymaster/quaymaster/image"
)

// dockerManifest is the file by which an archive of "docker save" is known (Docker
// Image Specification v1.2). Docker 25 and later write an OCI layout beside it.
const dockerManifest = "manifest.json"

// savedAgain says how else an image can be carried.
const savedAgain = `save it with its manifest: by "cosign save --dir DIR IMAGE" (with its signatures), by "skopeo copy docker://IMAGE oci-archive:FILE:TAG", or by "docker save" with Docker's containerd image store`

// dockerImage is an entry of manifest.json.
type dockerImage struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// dockerImages reads a manifest.json as Docker does, whatever follows its end. Of what
// Docker does not read, another program's, it returns none.
func dockerImages(body []byte) []dockerImage {
	var saved []dockerImage
	if json.NewDecoder(bytes.NewReader(body)).Decode(&saved) != nil || len(saved) == 0 || saved[0].Config == "" {
		return nil
	}
	return saved
}

// agreesWithDocker refuses an archive whose manifest.json, by which "docker load" may go,
// names other images than index.json, by which they are proved. An image is its
// configuration, which names its layers.
func (l *Layout) agreesWithDocker() error {
	corrupt := func(format string, args ...any) error {
		return l.fail("open OCI layout", "", image.Corrupt, fmt.Errorf("its manifest.json, which \"docker load\" may read, "+format, args...))
	}
	body, err := l.readFile(dockerManifest, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return corrupt("cannot be read: %w", err)
	}
	indexed := map[string][]string{} // configurations, by the manifest in the index
	known := map[string]bool{}
	for _, entry := range l.entries {
		if _, read := indexed[entry.Digest]; read {
			continue
		}
		indexed[entry.Digest] = l.configurations(entry.Digest, true)
		for _, config := range indexed[entry.Digest] {
			known[config] = true
		}
	}
	for _, one := range dockerImages(body) {
		text, err := l.readFile(one.Config, maxManifest)
		if err != nil {
			return corrupt("names a configuration that cannot be read: %w", withoutPath(err))
		}
		config := image.DigestOf(text).String()
		if !known[config] {
			return corrupt("names an image that index.json does not have")
		}
		for _, tag := range one.RepoTags {
			if named, ok := l.named(tag); ok && !slices.Contains(indexed[named], config) {
				return corrupt("has another image as %s than index.json", shorten(tag))
			}
		}
	}
	return nil
}

// named returns the manifest that has a whole name in the index.
func (l *Layout) named(name string) (digest string, ok bool) {
	ref, err := image.Parse(name)
	if err != nil {
		return "", false
	}
	for _, entry := range l.entries {
		if entry.hasTag(ref.Repository(), ref.Tag(), false) {
			return entry.Digest, true
		}
	}
	return "", false
}

// configurations returns those of a manifest, or of the platforms of an index that are
// there.
func (l *Layout) configurations(written string, isTop bool) []string {
	digest, err := image.ParseDigest(written)
	if err != nil {
		return nil
	}
	body, err := l.readFile(blobPath(digest), maxManifest)
	if err != nil || !digest.Matches(body) {
		return nil
	}
	var parsed struct {
		Config    layoutEntry   `json:"config"`
		Manifests []layoutEntry `json:"manifests"`
	}
	if json.Unmarshal(body, &parsed) != nil {
		return nil
	}
	configs := []string{parsed.Config.Digest}
	if isTop && len(parsed.Manifests) <= maxLayoutManifests {
		for _, platform := range parsed.Manifests {
			configs = append(configs, l.configurations(platform.Digest, false)...)
		}
	}
	return configs
}

// isDockerArchive reports whether there is a manifest.json of Docker's.
func (l *Layout) isDockerArchive() bool {
	body, err := l.readFile(dockerManifest, maxIndex)
	if err != nil {
		return false
	}
	return len(dockerImages(body)) > 0
}

// dockerArchive says what an archive without a layout lacks. A digest that is made
// from its layers would be nobody's: registries pack layers before they name them.
func (l *Layout) dockerArchive() error {
	failure := l.fail("open OCI layout", "", image.NotFound,
		fmt.Errorf("it is what an older \"docker save\" writes: it holds layers and a configuration, and not the manifest whose digest a registry gave the image and signatures name"))
	failure.Hint = savedAgain
	return failure
}

// Notes says what is in doubt about the layout, a sentence each. An archive of
// "docker save" from a store that keeps layers unpacked has a manifest that was made
// for the archive.
func (l *Layout) Notes() []string {
	if _, err := l.readFile(dockerManifest, maxIndex); err != nil {
		return nil
	}
	var notes []string
	for _, entry := range l.entries {
		digest, err := image.ParseDigest(entry.Digest)
		if err != nil {
			continue
		}
		if body, err := l.readFile(blobPath(digest), maxManifest); err == nil && isUnpacked(body) {
			notes = append(notes, fmt.Sprintf("%s: the manifest %s has unpacked layers, as \"docker save\" makes them: its digest is probably not the one that a registry gave the image, and then no signature names it; %s",
				l.path, digest, savedAgain))
		}
	}
	return notes
}

// isUnpacked reports whether a manifest has layers, and all of them are plain tar.
func isUnpacked(manifest []byte) bool {
	var parsed struct {
		Layers []struct {
			MediaType string `json:"mediaType"`
		} `json:"layers"`
	}
	if json.Unmarshal(manifest, &parsed) != nil {
		return false
	}
	for _, layer := range parsed.Layers {
		if layer.MediaType != "application/vnd.oci.image.layer.v1.tar" && layer.MediaType != "application/vnd.docker.image.rootfs.diff.tar" {
			return false
		}
	}
	return len(parsed.Layers) > 0
}
