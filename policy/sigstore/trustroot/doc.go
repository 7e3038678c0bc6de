// Package trustroot answers: whom does a TrustRoot of Sigstore's policy-controller
// trust?
//
// It reads documents of policy.sigstore.dev/v1alpha1 in their three forms. Keys
// and certificates (sigstoreKeys) become a trusted_root.json (media type version
// 0.1) of their own; a TUF repository, at an address (remote) or carried along
// (repository), is handed to whoever reads such, and Roots keeps what it said.
// Nothing here opens a connection.
package trustroot
