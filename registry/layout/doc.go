// Package layout reads images and their signatures from files, without a network.
//
// It implements the OCI Image Layout (OCI Image Specification 1.1), as a directory or a tar
// archive, as "cosign save" and "docker save" (Docker Image Specification 1.2) write it. A Set
// combines several layouts. Failures are registry.Errors, so that callers treat a layout as a
// registry. Archives are untrusted: every read is bounded, and no link leads out of a directory.
package layout
