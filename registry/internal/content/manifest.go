package content

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/strictjson"
)

// mediaTypeArtifact is the withdrawn artifact manifest of OCI 1.1 candidates,
// which early notation signatures use.
const mediaTypeArtifact = "application/vnd.oci.artifact.manifest.v1+json"

// ManifestTypes are the media types of the manifests that are requested and understood.
func ManifestTypes() []string {
	return []string{
		image.MediaTypeIndex, image.MediaTypeManifest, image.MediaTypeDockerList, image.MediaTypeDockerManifest, mediaTypeArtifact,
	}
}

// IsManifestType reports whether mediaType is one of ManifestTypes.
func IsManifestType(mediaType string) bool { return slices.Contains(ManifestTypes(), mediaType) }

// Outline holds the fields that distinguish the kinds of manifests.
type Outline struct {
	MediaType    string          `json:"mediaType"`
	ArtifactType string          `json:"artifactType"`
	Manifests    json.RawMessage `json:"manifests"`
	Config       json.RawMessage `json:"config"`
	Layers       json.RawMessage `json:"layers"`
}

// Describe reads the media type and size of a manifest. It refuses a body that is no
// manifest, one with another media type than its header, and one that could be read as an
// index and as an image: two readers would interpret it differently (CVE-2021-41190).
func Describe(body []byte, header string) (image.Descriptor, error) {
	var parsed Outline
	if err := json.Unmarshal(body, &parsed); err != nil {
		return image.Descriptor{}, fmt.Errorf("the body (%s) is no manifest: %w", OrNone(header), strictjson.Readable(err))
	}
	mediaType := parsed.MediaType
	if IsManifestType(header) {
		if mediaType != "" && mediaType != header {
			return image.Descriptor{}, fmt.Errorf("its header has %s, its body %s", header, Shorten(mediaType))
		}
		mediaType = header
	} else if !isVague(header) {
		return image.Descriptor{}, errHeader{header}
	}
	if !IsManifestType(mediaType) {
		return image.Descriptor{}, fmt.Errorf("the media type %s is none of a manifest", OrNone(Shorten(mediaType)))
	}
	descriptor := image.Descriptor{MediaType: mediaType, Size: int64(len(body)), ArtifactType: parsed.ArtifactType}
	if descriptor.IsIndex() && (parsed.Layers != nil || parsed.Config != nil) || !descriptor.IsIndex() && parsed.Manifests != nil {
		return image.Descriptor{}, errors.New("it is both an index and an image manifest")
	}
	return descriptor, nil
}

// ByContent returns an error of Describe about a body of the requested digest: an image.ContentError
// unless it is due to the header alone, which may be the registry's.
func ByContent(err error) error {
	if _, ok := errors.AsType[errHeader](err); ok || err == nil {
		return err
	}
	return &image.ContentError{Err: err}
}

// errHeader is a Content-Type of something else.
type errHeader struct{ mediaType string }

// Error implements error.
func (e errHeader) Error() string {
	return "the media type " + Shorten(e.mediaType) + " is none of a manifest"
}

// isVague reports whether a Content-Type is too general for a manifest, so that the
// manifest's own field counts.
func isVague(mediaType string) bool {
	switch mediaType {
	case "", "application/json", "application/octet-stream", "text/plain":
		return true
	}
	return false
}

// OrNone is the media type for a message.
func OrNone(mediaType string) string {
	if mediaType == "" {
		return "no media type"
	}
	return mediaType
}
