// Package signedmanifests asks: do we verify what k8s-manifest-sigstore 0.5 has signed?
//
// The documents are those of the tool's own tests, read from its module, whose version is pinned in
// test/tools/definitions, and those of testdata, which kubectl-sigstore 0.5.4 of test/tools/kubectl-sigstore
// signed; make long signs others with the program. They have both forms of the message: a manifest, and an
// archive of one.
// Each is admitted with its key, and refused with another key and after one change.
package signedmanifests
