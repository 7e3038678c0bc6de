// Package trust answers: whose signatures could count at all, and which keys
// and certificates stand for them now?
//
// A Snapshot is an immutable set of trust: the trusted root (Sigstore's
// trusted_root.json, media type version 0.1, or one composed from PEM files),
// and a Generation that is the same for equal content on every replica. A Store
// swaps snapshots atomically; what is refreshed (the root by TUF, keys in a
// KMS) is refreshed beside a request, never inside one. Snapshot.Material
// composes what one authority's signatures are proved against, and is the only
// way in which the verifiers of package verify's children get at keys and
// roots.
//
// A root is parsed when the first authority needs one, and not before: a policy
// of keys with the transparency log switched off works without any.
//
// Not finding trust (a KMS that does not answer, a root without a log) is never
// a verify.Rejection: it is "could not look".
package trust
