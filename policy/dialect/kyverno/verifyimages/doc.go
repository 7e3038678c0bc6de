// Package verifyimages compiles the verifyImages entries of Kyverno rules.
//
// It compiles entries of kyverno.io/v1 (Kyverno 1.19, "Verify Images") into package policy's
// checks: attestors, attestations with their conditions, evidence repositories and credentials.
// An entry's variables are resolved for each request; an entry without variables is compiled
// once.
package verifyimages
