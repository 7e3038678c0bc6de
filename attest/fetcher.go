package attest

import (
	"context"

	"github.com/quaymaster/quaymaster/image"
)

// Fetcher is the registry access of Find. A registry client, an OCI layout and an archive
// implement it. Every method is bounded, and fails with an image.Failure.
type Fetcher interface {
	// Manifest returns the manifest at a tag or digest. Its bytes are hashed and, for a digest,
	// compared.
	Manifest(ctx context.Context, repository image.Repository, reference string) (image.Descriptor, []byte, error)
	// Blob returns the bytes of a descriptor, hashed and compared; more than
	// most bytes is an image.Bound.
	Blob(ctx context.Context, repository image.Repository, blob image.Descriptor, most int64) ([]byte, error)
	// Referrers returns the descriptors of the manifests with digest as their subject, of the
	// given artifact types (none: of all; "": of those listed without one). Of annotations, only
	// those that describe a bundle's content are needed. No referrers is an empty list, not an
	// error. A truncated list is returned together with an image.Bound error.
	Referrers(ctx context.Context, repository image.Repository, digest image.Digest, artifactTypes []string) ([]image.Descriptor, error)
}
