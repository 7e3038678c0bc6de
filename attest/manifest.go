package attest

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/image"
	"github.com/quaymaster/quaymaster/internal/strictjson"
)

// manifest holds the relevant fields of an OCI image manifest with evidence.
type manifest struct {
	MediaType    string                     `json:"mediaType"`
	ArtifactType string                     `json:"artifactType"`
	Config       struct{ MediaType string } `json:"config"`
	Layers       []image.Descriptor         `json:"-"`
	Subject      *struct {
		Digest image.Digest `json:"digest"`
	} `json:"subject"`
}

// parseManifest parses a manifest; an index is refused.
func parseManifest(described image.Descriptor, b []byte) (manifest, error) {
	if described.IsIndex() {
		return manifest{}, errors.New("it is an index, not a manifest with evidence")
	}
	if err := CheckJSON(b); err != nil {
		return manifest{}, fmt.Errorf("manifest: %w", err)
	}
	var m manifest
	if err := json.Unmarshal(b, &m); err != nil {
		return manifest{}, fmt.Errorf("manifest: %w", strictjson.Readable(err))
	}
	var err error
	m.Layers, err = m.descriptors(b)
	if err != nil {
		return manifest{}, fmt.Errorf("manifest: %w", err)
	}
	return m, nil
}

// descriptors parses the layers one by one, so that a list of empty elements costs nothing.
func (m manifest) descriptors(b []byte) ([]image.Descriptor, error) {
	name := "layers"
	if m.MediaType == mediaTypeArtifact {
		name = "blobs"
	}
	members, err := fields(b, name)
	if err != nil {
		return nil, err
	}
	list, err := elements(members, name, maxManifestLayers)
	switch {
	case err != nil:
		return nil, err
	case len(list) > maxManifestLayers:
		return nil, overBound(name, "maxManifestLayers", maxManifestLayers)
	}
	layers := make([]image.Descriptor, len(list))
	for i, raw := range list {
		if err := json.Unmarshal(raw, &layers[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, strictjson.Readable(err))
		}
	}
	return layers, nil
}

// artifactType returns the manifest's type by the OCI Image Specification 1.1: its artifactType,
// or else the media type of its config.
func (m manifest) artifactType() string {
	if m.ArtifactType != "" {
		return m.ArtifactType
	}
	return m.Config.MediaType
}

// about fails unless the digest is the manifest's subject: a list under another image would
// otherwise move evidence to that image.
func (m manifest) about(subject image.Digest) error {
	switch {
	case m.Subject == nil:
		return errors.New("it is listed as a referrer and names no subject")
	case m.Subject.Digest != subject:
		return fmt.Errorf("it is listed as a referrer of %s and names another subject, %s", subject, m.Subject.Digest)
	}
	return nil
}

// only returns the one layer of a manifest that must have exactly one.
func (m manifest) only() (image.Descriptor, error) {
	if len(m.Layers) != 1 {
		return image.Descriptor{}, fmt.Errorf("want exactly one layer, got %d", len(m.Layers))
	}
	return m.Layers[0], nil
}
