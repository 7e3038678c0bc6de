// Package registry answers: what does a registry say about this image?
//
// It is the only package that speaks HTTP to registries. A Client resolves
// tags, and fetches manifests, blobs and referrers; a Layout does the same over
// an OCI image layout on disk. Both satisfy what finding evidence needs.
// Every answer is bounded, every body is hashed, and a failure is an *Error
// that says whether the thing is not there, may not be seen, could not be
// looked at, was too much or contradicts itself.
//
// It follows the OCI Distribution Specification 1.1, the OCI Image Layout
// Specification 1.1, and the token specification of the distribution project.
// The handshake is oras-go's: no ping, the request itself is answered with the
// challenge. Which host may see a credential is decided in internal/guard.
package registry
