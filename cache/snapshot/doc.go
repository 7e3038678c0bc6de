// Package snapshot answers: what did a process know that others like it should still
// know when all of them have ended?
//
// It knows nothing of what is kept. A part is some bytes that mean something without
// the other parts; it is compressed (RFC 1952) and sealed under the replicas' key
// (XChaCha20-Poly1305, draft-irtf-cfrg-xchacha-03), so that who can write where it is
// kept can take it away, or put an older one back, and can neither read it nor make one
// up. Where that is, a Store knows; Folder is one.
package snapshot
