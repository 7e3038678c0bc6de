package compose

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/quaymaster/quaymaster/deploy/image/bill"
)

// Media types of an artifact without a configuration: the empty configuration of the image
// specification, and a bill of materials as the layer.
const (
	emptyType = types.MediaType("application/vnd.oci.empty.v1+json")
	billType  = types.MediaType("application/spdx+json")
)

var emptyConfig = []byte("{}")

// artifact is a document that refers to a manifest.
type artifact struct {
	descriptor         v1.Descriptor
	manifest, document []byte
}

// describe is partial.Descriptor with the fields that a subject has.
func describe(of partial.Describable) (v1.Descriptor, error) {
	d, err := partial.Descriptor(of)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: d.MediaType, Size: d.Size, Digest: d.Digest}, nil
}

// attach makes a bill of materials and its artifact, and returns the bill.
func (i *Index) attach(subject v1.Descriptor, document bill.Document) ([]byte, error) {
	document.Digest = subject.Digest.String()
	written, err := bill.Write(document)
	if err != nil {
		return nil, err
	}
	layer, err := blob(billType, written)
	if err != nil {
		return nil, err
	}
	config, err := blob(emptyType, emptyConfig)
	if err != nil {
		return nil, err
	}
	manifest, err := json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: string(billType),
		Config: config, Layers: []v1.Descriptor{layer}, Subject: &subject,
	})
	if err != nil {
		return nil, fmt.Errorf("write the bill's manifest: %w", err)
	}
	described, err := blob(types.OCIManifestSchema1, manifest)
	if err != nil {
		return nil, err
	}
	described.ArtifactType = string(billType)
	i.bills = append(i.bills, artifact{descriptor: described, manifest: manifest, document: written})
	return written, nil
}

// blob describes content.
func blob(mediaType types.MediaType, content []byte) (v1.Descriptor, error) {
	digest, size, err := v1.SHA256(bytes.NewReader(content))
	return v1.Descriptor{MediaType: mediaType, Size: size, Digest: digest}, err
}
