// Package snapshot saves the content of a cache, for processes that start after all others have
// ended.
//
// It does not depend on the content. A part is a sequence of bytes that is valid without the
// other parts. It is compressed (RFC 1952) and sealed under the replicas' key
// (XChaCha20-Poly1305, draft-irtf-cfrg-xchacha-03). An attacker with write access to the storage
// can delete it or restore an older one, but can neither read nor forge it. A Store implements
// the storage; Folder is one.
package snapshot
