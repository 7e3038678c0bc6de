// Package gatetest provides signed images in a test registry.
//
// It builds small images, signs them in every format of cosign, Sigstore bundles and the
// Notary Project, and stores the results where those tools store them. The demo, the tests
// of the engine and the benchmarks share it. It follows cosign's signature specification,
// the Sigstore bundle specification v0.3 and the Notary Project's signature specification
// v1.
package gatetest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/quaymaster/quaymaster/registry/registrytest"
	"github.com/quaymaster/quaymaster/verify/verifytest"
)

// Yard is a registry with signers at hand. It is not safe for concurrent use.
type Yard struct {
	Registry *registrytest.Server
	Sigstore *verifytest.Sigstore
	layers   map[string][]registrytest.Descriptor // of cosign's tags
}

// New opens a yard on a registry.
func New(registry *registrytest.Server, sigstore *verifytest.Sigstore) *Yard {
	return &Yard{Registry: registry, Sigstore: sigstore, layers: map[string][]registrytest.Descriptor{}}
}

// Image is an image in the yard's registry.
type Image struct {
	// Name is the reference as a user writes it, by tag.
	Name string
	// Repository is the path in the registry.
	Repository string
	// Manifest is the manifest that the tag resolved to when the image was built.
	Manifest registrytest.Descriptor
}

// ByDigest returns the image's name by digest.
func (i Image) ByDigest() string {
	return i.Name[:strings.LastIndexByte(i.Name, ':')] + "@" + i.Manifest.Digest
}

// Build makes an image with one layer; the content makes its digest.
func (y *Yard) Build(repository, tag, content string) Image {
	return Image{
		Name:       y.Registry.Host() + "/" + repository + ":" + tag,
		Repository: repository,
		Manifest:   y.Registry.PutImage(repository, tag, content),
	}
}

// BuildIndex makes an index of images, one for each platform.
func (y *Yard) BuildIndex(repository, tag string, children ...Image) Image {
	manifests := make([]registrytest.Descriptor, len(children))
	for i, child := range children {
		manifests[i] = child.Manifest
	}
	return Image{
		Name:       y.Registry.Host() + "/" + repository + ":" + tag,
		Repository: repository,
		Manifest:   y.Registry.PutIndex(repository, tag, manifests...),
	}
}

// SignLegacy signs as cosign 2 does by default: a payload under the tag sha256-<hex>.sig.
// The claim selects the signer and the parameters; its image is filled in.
func (y *Yard) SignLegacy(image Image, claim verifytest.Claim, annotations map[string]any) error {
	claim.Image = &verifytest.SimpleSigning{
		Reference: y.Registry.Host() + "/" + image.Repository, Digest: image.Manifest.Digest, Annotations: annotations,
	}
	layer, err := y.Sigstore.Layer(claim)
	if err != nil {
		return fmt.Errorf("sign %s: %w", image.Name, err)
	}
	return y.PutLegacy(image, ".sig", layer)
}

// AttestLegacy attests as cosign 2 does by default, under sha256-<hex>.att.
func (y *Yard) AttestLegacy(image Image, claim verifytest.Claim, predicateType string, predicate any) error {
	claim.Statement = verifytest.Attestation(image.Manifest.Digest, predicateType, predicate)
	claim.Statement.Version = "v0.1"
	layer, err := y.Sigstore.Layer(claim)
	if err != nil {
		return fmt.Errorf("attest %s: %w", image.Name, err)
	}
	return y.PutLegacy(image, ".att", layer)
}

// PutLegacy adds a layer to one of cosign's tags for an image.
func (y *Yard) PutLegacy(image Image, suffix string, layer *verifytest.Layer) error {
	tag := strings.Replace(image.Manifest.Digest, ":", "-", 1) + suffix
	blob := y.Registry.PutBlob(image.Repository, layer.MediaType, layer.Payload)
	blob.Annotations = layer.Annotations
	key := image.Repository + ":" + tag
	y.layers[key] = append(y.layers[key], blob)
	return y.put(image.Repository, tag, manifest{
		MediaType: ocispec.MediaTypeImageManifest,
		Config:    y.Registry.PutBlob(image.Repository, ocispec.MediaTypeImageConfig, []byte("{}")),
		Layers:    y.layers[key],
	})
}

// SignBundle signs as cosign 3 does: a bundle with a signing statement, as a
// referrer.
func (y *Yard) SignBundle(image Image, claim verifytest.Claim, annotations map[string]any) error {
	claim.Statement = verifytest.CosignSignature(image.Manifest.Digest, annotations)
	return y.bundle(image, claim, verifytest.CosignSignPredicateType)
}

// AttestBundle attests in a bundle, as cosign 3 and GitHub do.
func (y *Yard) AttestBundle(image Image, claim verifytest.Claim, predicateType string, predicate any) error {
	claim.Statement = verifytest.Attestation(image.Manifest.Digest, predicateType, predicate)
	return y.bundle(image, claim, predicateType)
}

func (y *Yard) bundle(image Image, claim verifytest.Claim, predicateType string) error {
	content, err := y.Sigstore.Bundle(claim)
	if err != nil {
		return fmt.Errorf("sign %s: %w", image.Name, err)
	}
	return y.PutBundle(image, content, predicateType)
}

// PutBundle stores a bundle as a referrer of an image.
func (y *Yard) PutBundle(image Image, content []byte, predicateType string) error {
	return y.refer(image, manifest{
		ArtifactType: verifytest.BundleMediaType,
		Config:       y.Registry.PutBlob(image.Repository, ocispec.MediaTypeEmptyJSON, []byte("{}")),
		Layers:       []registrytest.Descriptor{y.Registry.PutBlob(image.Repository, verifytest.BundleMediaType, content)},
		Annotations: map[string]string{
			"dev.sigstore.bundle.content":       "dsse-envelope",
			"dev.sigstore.bundle.predicateType": predicateType,
		},
	})
}

// SignNotation signs as notation does, in an envelope of the media type.
func (y *Yard) SignNotation(image Image, notary *verifytest.Notary, notation verifytest.Notation) error {
	notation.Target = ocispec.Descriptor{
		MediaType: image.Manifest.MediaType, Digest: digest.Digest(image.Manifest.Digest), Size: image.Manifest.Size,
	}
	if notation.MediaType == "" {
		notation.MediaType = verifytest.NotationJWS
	}
	envelope, err := notary.Sign(notation)
	if err != nil {
		return fmt.Errorf("sign %s: %w", image.Name, err)
	}
	return y.refer(image, manifest{
		Config: y.Registry.PutBlob(image.Repository, "application/vnd.cncf.notary.signature", []byte("{}")),
		Layers: []registrytest.Descriptor{y.Registry.PutBlob(image.Repository, notation.MediaType, envelope)},
	})
}

type manifest struct {
	SchemaVersion int                       `json:"schemaVersion"`
	MediaType     string                    `json:"mediaType"`
	ArtifactType  string                    `json:"artifactType,omitempty"`
	Config        registrytest.Descriptor   `json:"config"`
	Layers        []registrytest.Descriptor `json:"layers"`
	Subject       *registrytest.Descriptor  `json:"subject,omitempty"`
	Annotations   map[string]string         `json:"annotations,omitempty"`
}

func (y *Yard) refer(image Image, m manifest) error {
	m.Subject = &registrytest.Descriptor{MediaType: image.Manifest.MediaType, Digest: image.Manifest.Digest, Size: image.Manifest.Size}
	m.MediaType = ocispec.MediaTypeImageManifest
	if err := y.put(image.Repository, "", m); err != nil {
		return err
	}
	y.Registry.KeepReferrersTag(image.Repository, image.Manifest.Digest)
	return nil
}

func (y *Yard) put(repository, reference string, m manifest) error {
	m.SchemaVersion = 2
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("manifest: %w", err)
	}
	if reference == "" {
		reference = registrytest.DigestOf(body)
	}
	y.Registry.PutManifest(repository, reference, m.MediaType, body)
	return nil
}
