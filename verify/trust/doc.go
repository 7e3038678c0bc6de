// Package trust resolves the keys and certificates that signatures are verified against.
//
// A Snapshot is an immutable set of trust: the trusted root (Sigstore's trusted_root.json, media
// type version 0.1, or one composed from PEM files), and a Generation that is the same for equal
// content on every replica. A Store swaps snapshots atomically. Refreshes (of the root by TUF, of
// keys in a KMS) run in the background, never inside a request. Snapshot.Material composes the
// trust of one authority. The verifiers in the packages below verify get keys and roots only
// through it.
//
// A root is parsed when the first authority needs one: a policy of keys with the transparency log
// switched off works without any.
//
// Missing trust (an unresponsive KMS, a root without a log) is never a verify.Rejection, but an
// error: the signature could not be verified.
package trust
