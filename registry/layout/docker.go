package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/limit"
	"github.com/quaymaster/quaymaster/registry/internal/content"
)

// dockerManifest is the file that marks an archive of "docker save" (Docker Image
// Specification v1.2). Docker 25 and later write an OCI layout in addition.
const dockerManifest = "manifest.json"

// maxConfigurations bounds the bytes read to compare the images that Docker may load with
// the verified ones: manifests and configurations have some kilobytes each, and an archive
// of a thousand images some megabytes of them.
const maxConfigurations = 64 << 20

// maxNamings bounds how often a name of manifest.json is compared with a manifest of
// index.json: two thousand images, of a name each, can be saved together.
const maxNamings = 1 << 22

// savedAgain describes other commands to save an image.
const savedAgain = `save it with its manifest: by "cosign save --dir DIR IMAGE" (with its signatures), by "skopeo copy docker://IMAGE oci-archive:FILE:TAG", or by "docker save" with Docker's containerd image store`

// dockerImage is an entry of manifest.json.
type dockerImage struct {
	Config   string   `json:"Config"`
	RepoTags []string `json:"RepoTags"`
	Layers   []string `json:"Layers"`
}

// dockerImages reads a manifest.json as Docker does: trailing content is ignored. It
// returns none for content that Docker does not read, and for another program's file,
// where no entry has a configuration.
func dockerImages(body []byte) []dockerImage {
	var saved []dockerImage
	if json.NewDecoder(bytes.NewReader(body)).Decode(&saved) != nil || !slices.ContainsFunc(saved, dockerImage.hasConfig) {
		return nil
	}
	return saved
}

func (d dockerImage) hasConfig() bool { return d.Config != "" }

// agreesWithDocker refuses an archive with a manifest.json, which "docker load" may use,
// that names other images than index.json, by which they are verified. An image is
// identified by its configuration, which names its layers.
func (l *Layout) agreesWithDocker() error {
	body, err := l.readFile(dockerManifest, maxIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return l.disagrees(image.Corrupt, "cannot be read: %w", err)
	}
	return l.agreesWith(dockerImages(body), newConfigurations(l))
}

func (l *Layout) disagrees(kind image.Kind, format string, args ...any) error {
	return l.fail("open OCI layout", "", kind, fmt.Errorf("its manifest.json, which \"docker load\" may read, "+format, args...))
}

// agreesWith compares the images that manifest.json names.
func (l *Layout) agreesWith(saved []dockerImage, found *configurations) error {
	if len(saved) == 0 {
		return nil
	}
	names := 0
	for _, one := range saved {
		names += len(one.RepoTags)
	}
	if len(saved) > maxLayoutManifests || names > maxLayoutManifests {
		return l.disagrees(image.Bound, "has more than %d images or names", maxLayoutManifests)
	}
	if names*len(l.entries) > maxNamings {
		return l.disagrees(image.Bound, "has too many names to compare with so many manifests")
	}
	indexed := map[string]map[string]bool{} // configurations, by the manifest in the index
	known := map[string]bool{}
	for _, entry := range l.entries {
		if _, read := indexed[entry.Digest]; !read {
			indexed[entry.Digest] = found.of(entry.Digest)
			maps.Copy(known, indexed[entry.Digest])
		}
	}
	for _, one := range saved {
		if !one.hasConfig() {
			return l.disagrees(image.Corrupt, "names an image without a configuration")
		}
		config, err := found.named(one.Config)
		if found.left < 0 {
			return l.disagrees(image.Bound, "cannot be compared: %w", errConfigurations)
		}
		if err != nil {
			return l.disagrees(image.Corrupt, "names a configuration that cannot be read: %w", withoutPath(err))
		}
		if !known[config] {
			return l.disagrees(image.Corrupt, "names an image that index.json does not have")
		}
		for _, tag := range one.RepoTags {
			for _, named := range l.named(tag) {
				if !indexed[named][config] {
					return l.disagrees(image.Corrupt, "has another image as %s than index.json", content.Shorten(tag))
				}
			}
		}
	}
	return nil
}

// named returns the manifests that a name of Docker's can be resolved to in the layout:
// with names that lack their repository, and without.
func (l *Layout) named(name string) []string {
	ref, err := image.Parse(name)
	if err != nil {
		return nil
	}
	var found []string
	for _, asked := range []*Layout{l, l.OnlyFullNames()} {
		if digest, err := asked.find("resolve", ref.Repository(), ref.Tag()); err == nil {
			found = append(found, digest.String())
		}
	}
	return found
}

// configurations finds the configurations of images by their digests. It reads each file
// once, and at most maxConfigurations in all.
type configurations struct {
	layout     *Layout
	left       int64 // bytes that may be read; below zero, there were more
	ofManifest map[image.Digest]string
	ofFile     map[string]configuration
}

// configuration is a file that manifest.json names.
type configuration struct {
	digest string
	err    error
}

func newConfigurations(l *Layout) *configurations {
	return &configurations{layout: l, left: maxConfigurations, ofManifest: map[image.Digest]string{}, ofFile: map[string]configuration{}}
}

var errConfigurations = &limit.ExceededError{What: "all manifests and configurations", Most: maxConfigurations}

func (c *configurations) read(name string) ([]byte, error) {
	if c.left < 0 {
		return nil, errConfigurations
	}
	body, err := c.layout.readFile(name, content.MaxManifest)
	c.left -= int64(len(body))
	if kindOfFile(err) == image.Bound {
		c.left -= content.MaxManifest
	}
	return body, err
}

// named returns the digest of a file.
func (c *configurations) named(name string) (string, error) {
	file, known := c.ofFile[name]
	if !known {
		body, err := c.read(name)
		file = configuration{digest: image.DigestOf(body).String(), err: err}
		c.ofFile[name] = file
	}
	return file.digest, file.err
}

// of returns the configurations of a manifest, or of the platforms of an index that are
// there.
func (c *configurations) of(written string) map[string]bool {
	manifest, err := image.ParseDigest(written)
	if err != nil {
		return nil
	}
	own, platforms := c.outline(manifest)
	configs := map[string]bool{own: true}
	for _, written := range platforms {
		digest, err := image.ParseDigest(written)
		if err != nil {
			continue
		}
		if _, known := c.ofManifest[digest]; !known {
			c.ofManifest[digest], _ = c.outline(digest)
		}
		configs[c.ofManifest[digest]] = true
	}
	delete(configs, "")
	return configs
}

// outline reads which configuration a manifest names, or which manifests an index does.
func (c *configurations) outline(digest image.Digest) (config string, platforms []string) {
	body, err := c.read(blobPath(digest))
	if err != nil || !digest.Matches(body) {
		return "", nil
	}
	type named struct {
		Digest string `json:"digest"`
	}
	var parsed struct {
		Config    named   `json:"config"`
		Manifests []named `json:"manifests"`
	}
	if json.Unmarshal(body, &parsed) != nil {
		return "", nil
	}
	if len(parsed.Manifests) <= maxLayoutManifests {
		for _, platform := range parsed.Manifests {
			platforms = append(platforms, platform.Digest)
		}
	}
	return parsed.Config.Digest, platforms
}

// isDockerArchive reports whether there is a manifest.json of Docker's.
func (l *Layout) isDockerArchive() bool {
	body, err := l.readFile(dockerManifest, maxIndex)
	if err != nil {
		return false
	}
	return len(dockerImages(body)) > 0
}

// dockerArchive reports that an archive has no layout. A digest computed from its layers
// would match no registry's: registries compress layers before they name them.
func (l *Layout) dockerArchive() error {
	failure := l.fail("open OCI layout", "", image.NotFound,
		fmt.Errorf("it is written by an older \"docker save\": it holds layers and a configuration, and not the manifest of the digest that the registry and signatures use"))
	failure.Hint = savedAgain
	return failure
}

// Notes returns caveats about the layout, a sentence each. An archive of "docker save"
// from a store that keeps layers unpacked has a manifest that was made for the archive.
func (l *Layout) Notes() []string {
	if _, err := l.readFile(dockerManifest, maxIndex); err != nil {
		return nil
	}
	var notes []string
	seen := map[string]bool{}
	for _, entry := range l.entries {
		digest, err := image.ParseDigest(entry.Digest)
		if err != nil || seen[entry.Digest] {
			continue
		}
		seen[entry.Digest] = true
		if body, err := l.readFile(blobPath(digest), content.MaxManifest); err == nil && isUnpacked(body) {
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
