package image

import "strings"

// Descriptor is the used part of an OCI descriptor: a digest and, once available, media type and
// size.
type Descriptor struct {
	MediaType    string            `json:"mediaType,omitempty"`
	Digest       Digest            `json:"digest"`
	Size         int64             `json:"size,omitempty"`
	ArtifactType string            `json:"artifactType,omitempty"`
	Annotations  map[string]string `json:"annotations,omitempty"`
	Platform     *Platform         `json:"platform,omitempty"`
}

// IsComplete reports whether media type and size are set in addition to the digest, as notation
// signatures require.
func (d Descriptor) IsComplete() bool { return d.MediaType != "" && d.Size > 0 }

// Platform is the operating system and processor of a child of an index, as in the OCI Image
// Index Specification 1.1.
type Platform struct {
	OS           string   `json:"os"`
	Architecture string   `json:"architecture"`
	Variant      string   `json:"variant,omitempty"`
	OSVersion    string   `json:"os.version,omitempty"`
	OSFeatures   []string `json:"os.features,omitempty"`
}

// String returns os/architecture[/variant].
func (p Platform) String() string {
	parts := []string{p.OS, p.Architecture}
	if p.Variant != "" {
		parts = append(parts, p.Variant)
	}
	return strings.Join(parts, "/")
}

// Pinned is a reference together with the digest that it resolves to. Only Ref.Pin makes one, so
// its digest is always the one that was resolved, once, for the request.
type Pinned struct {
	ref        Ref
	descriptor Descriptor
}

// Ref returns the reference that was pinned.
func (p Pinned) Ref() Ref { return p.ref }

// Repository returns the repository of the reference.
func (p Pinned) Repository() Repository { return p.ref.repository }

// Digest returns the resolved digest.
func (p Pinned) Digest() Digest { return p.descriptor.Digest }

// Descriptor returns the descriptor of the manifest, as far as it is set.
func (p Pinned) Descriptor() Descriptor { return p.descriptor }

// IsZero reports whether p was never pinned.
func (p Pinned) IsZero() bool { return p.ref.IsZero() }

// Child returns p's repository pinned to another digest, of a manifest in the index behind p. The
// tag is dropped: it names the index.
func (p Pinned) Child(d Descriptor) Pinned {
	ref := Ref{repository: p.ref.repository, digest: d.Digest, written: p.ref.written}
	return Pinned{ref: ref, descriptor: d}
}

// At returns the same digest under another repository.
func (p Pinned) At(repository Repository) Pinned {
	return Pinned{ref: p.ref.At(repository), descriptor: p.descriptor}
}

// String returns registry/path[:tag]@digest, the exact name for a runtime.
func (p Pinned) String() string {
	if p.IsZero() {
		return ""
	}
	s := p.ref.repository.String()
	if p.ref.tag != "" {
		s += ":" + p.ref.tag
	}
	return s + "@" + p.descriptor.Digest.s
}

// Written returns the reference as written, with the digest appended if it had none: the smallest
// change that pins it.
func (p Pinned) Written() string {
	if !p.ref.digest.IsZero() {
		return p.ref.written
	}
	return p.ref.written + "@" + p.descriptor.Digest.s
}

// IsIndex reports whether the media type is that of an index.
func (d Descriptor) IsIndex() bool {
	return d.MediaType == MediaTypeIndex || d.MediaType == MediaTypeDockerList
}

// IsManifest reports whether the media type is that of a single image.
func (d Descriptor) IsManifest() bool {
	return d.MediaType == MediaTypeManifest || d.MediaType == MediaTypeDockerManifest
}

// Media types of manifests and indexes.
const (
	MediaTypeIndex          = "application/vnd.oci.image.index.v1+json"
	MediaTypeManifest       = "application/vnd.oci.image.manifest.v1+json"
	MediaTypeDockerList     = "application/vnd.docker.distribution.manifest.list.v2+json"
	MediaTypeDockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
)
