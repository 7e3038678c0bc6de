// Package bundle verifies that a Sigstore bundle proves a claim about an image for an authority.
//
// It reads bundles of the Sigstore bundle specification v0.1, v0.2 and v0.3, as cosign 2.6,
// cosign 3 and GitHub's artifact attestations write them: DSSE envelopes with an in-toto
// statement (cosign's own signing statement counts as a signature, any other as an attestation),
// and message signatures over the manifest's digest. sigstore-go verifies the signature, log
// inclusion (Rekor v1 and v2), timestamps (RFC 3161), certificate chain and certificate
// timestamps. This package then checks identity, extensions, annotations, subject and validity on
// the same signature.
//
// After sigstore-go refuses a bundle, the checks are repeated one by one only to report the
// reason.
package bundle
