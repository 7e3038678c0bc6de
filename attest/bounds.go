package attest

import (
	"fmt"

	"github.com/quaymaster/quaymaster/image"
)

// Bounds on the input for one image. They apply after filtering by type, so that irrelevant
// entries cannot exhaust them.
const (
	// MaxOpenedReferrers is how many referrers of one kind (a predicate type is a kind) are opened at
	// one place. Each costs two requests; images with daily scans accumulate some tens of one
	// kind.
	MaxOpenedReferrers = 128
	// MaxLayers is how many layers of one manifest are read. Each is a signature: cosign appends
	// one for every signing.
	MaxLayers = 256
	// MaxManifests is the total size of the referrers' manifests of one image, in bytes. Each has
	// about two kilobytes; one may have some megabytes.
	MaxManifests = 32 << 20
	// MaxDocuments is how many documents (signatures and attestations) are read for one image,
	// all places together; cosign's own limit is 1,000 for each place.
	MaxDocuments = 1000
	// MaxPayload is the size of a simple signing payload, in bytes. Payloads have about 300; the
	// rest allows annotations.
	MaxPayload = 1 << 20
	// MaxSignature is the size of a notation signature envelope, and of a bundle if only
	// signatures are requested, in bytes: a certificate chain, a log entry and a timestamp, some
	// tens of kilobytes.
	MaxSignature = 4 << 20
	// MaxAttestation is the size of a bundle, DSSE envelope or signed document, in bytes. Bills
	// of materials of large images have some megabytes (12 MB before base64 fit). cosign accepts
	// 128 MiB. A user with push access can make every verification read this much, so the bound
	// follows real documents.
	MaxAttestation = 16 << 20
	// MaxTotal is the size of all documents of one image, in bytes. It bounds the memory of a
	// search. Bytes count as they are received, small documents first.
	MaxTotal = 64 << 20
	// MaxSubjects is how many subjects a statement may have; release statements list some
	// hundreds of files.
	MaxSubjects = 1024
	// MaxSignatures is how many signatures a DSSE envelope may have; nearly all
	// have one.
	MaxSignatures = 32
	// MaxDepth is how deeply JSON may be nested, so that no parser runs out of
	// stack; the deepest predicates known reach about thirty.
	MaxDepth = 256
	// MaxMembers is how many members a JSON object may have; statements about
	// builds list some thousands of files by name.
	MaxMembers = 1 << 16

	// maxSubject is the size of one subject of a statement, in bytes: a name, some
	// digests and annotations.
	maxSubject = 64 << 10
	// unlistedManifest is the assumed size of a manifest without a size in its list, in bytes.
	unlistedManifest = 64 << 10
	// maxManifestLayers is how many layers of any type a manifest may have.
	maxManifestLayers = 4096
	// maxUnasked bounds the entries of Found.Unasked and of Found.Unsigned, which are for a
	// message.
	maxUnasked = 16
	// parallel is the number of concurrent requests of a search. Eight signatures must not take
	// more rounds than one; the fetcher has limits for each host.
	parallel = 16
	// maxEarly and maxEarlyBytes bound the requests before all places have responded. An image
	// has some tens of small documents; further requests wait.
	maxEarly      = 64
	maxEarlyBytes = 8 << 20
	// maxTag is the length of a tag, by the OCI Distribution Specification.
	maxTag = 128
)

// overBound returns the failure that names the exceeded bound.
func overBound(what, bound string, most int) error {
	return &image.Error{
		Kind: image.Bound, Op: "read", On: what,
		Err: fmt.Errorf("more than %s (%d)", bound, most),
	}
}
