// Package slsa verifies SLSA build provenance (v0.2 and v1) after its signature: the builder and the
// signer that may speak for it, the build level, and the source. It follows "Verifying artifacts" of
// SLSA 1.2. Levels are those of reviewed builders and of builders that users declare; no field of a
// statement sets one. Package verify verifies signatures and subjects.
package slsa
