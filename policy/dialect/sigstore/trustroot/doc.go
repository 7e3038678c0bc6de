// Package trustroot compiles TrustRoots of Sigstore's policy-controller.
//
// It reads documents of policy.sigstore.dev/v1alpha1 in their four forms. Keys and
// certificates (sigstoreKeys) become a trusted_root.json (media type version 0.1) of their
// own, or the document has one (trustedRootJSON). The reader of a TUF repository, at an address (remote) or inline (repository), is
// the caller's; Roots keeps its result. The package opens no connection.
package trustroot
