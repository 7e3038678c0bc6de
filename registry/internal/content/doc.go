// Package content checks what registries and image layouts hold.
//
// It reads manifests, blobs and lists of referrers (OCI Image Specification 1.1 and OCI
// Distribution Specification 1.1), compares them with their descriptors and bounds their size. It
// opens no connection and no file: packages registry and layout do.
package content
