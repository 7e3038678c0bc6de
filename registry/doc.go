// Package registry reads images and evidence from registries, and stores evidence there.
//
// It is the only package that sends HTTP requests to registries. A Client resolves tags,
// and fetches manifests, blobs and referrers; package layout does the same over an OCI image
// layout on disk. Both serve the search for evidence. Every answer is bounded, every body
// is hashed, and a failure is an *Error. Its kind distinguishes not found, refused,
// unavailable, above a bound, and contradictory content.
//
// It follows the OCI Distribution Specification 1.1, the OCI Image Layout Specification
// 1.1, and the token specification of the distribution project. The handshake is
// oras-go's: no ping, the request itself is answered with the challenge. Package
// internal/guard decides which host may receive a credential.
package registry
