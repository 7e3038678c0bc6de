package registry

import (
	"encoding/json"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
)

// dockerManifest is the file by which an archive of "docker save" is known (Docker
// Image Specification v1.2). Docker 25 and later write an OCI layout beside it.
const dockerManifest = "manifest.json"

// savedAgain says how else an image can be carried.
const savedAgain = `save it with its manifest: by "cosign save --dir DIR IMAGE" (with its signatures), by "skopeo copy docker://IMAGE oci-archive:FILE:TAG", or by "docker save" with Docker's containerd image store`

// isDockerArchive reports whether there is a manifest.json of Docker's.
func (l *Layout) isDockerArchive() bool {
	body, err := l.readFile(dockerManifest, maxIndex)
	if err != nil {
		return false
	}
	var images []struct {
		Config string   `json:"Config"`
		Layers []string `json:"Layers"`
	}
	return json.Unmarshal(body, &images) == nil && len(images) > 0 && images[0].Config != ""
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
