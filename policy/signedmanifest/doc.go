// Package signedmanifest reads the signed manifests of objects, as k8s-manifest-sigstore 0.5 writes
// them: in annotations of the object, or in an image that an annotation names.
//
// The annotation message is the signed content: YAML, or an archive (tar, gzip) of YAML files, each
// with one or more manifests. It is compressed once more, outside of the signature. The annotations
// signature, certificate and bundle belong together, and those of further signatures end in _1, _2 and
// so on. All of them have a common domain. Everything that is read here is written by the author of
// the object; nothing of it is verified.
package signedmanifest
