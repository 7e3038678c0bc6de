// Package verifyimages answers: what does an entry of verifyImages ask of each
// image?
//
// It compiles entries of rules of kyverno.io/v1 (Kyverno 1.19, "Verify Images")
// into package policy's checks: attestors, attestations with their conditions, and
// where evidence and credentials are. An entry's variables are filled in for each
// request; one that has none is compiled once.
package verifyimages
