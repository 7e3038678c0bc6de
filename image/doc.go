// Package image defines image references and digests, the vocabulary of every other package.
//
// A Ref is a reference as written, parsed and normalised. A Digest identifies bytes. A Pinned is
// a Ref with a resolved digest, and the only kind of reference that verification accepts. Kind
// and Error classify failures to fetch (not found, refused, unavailable, over a bound, corrupt),
// so that callers can distinguish them.
//
// References follow the grammar of the OCI Distribution Specification 1.1 and the conventions of
// Docker's command line (docker.io, library/, latest). Digests follow the OCI Image Specification
// 1.1 (sha256 and sha512).
package image
