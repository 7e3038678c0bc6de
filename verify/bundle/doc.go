// Package bundle answers: does this Sigstore bundle prove a claim about an
// image, for this authority?
//
// It reads bundles of the Sigstore bundle specification v0.1, v0.2 and v0.3,
// as cosign 2.6, cosign 3 and GitHub's artifact attestations write them: DSSE
// envelopes with an in-toto statement (cosign's own signing statement counts as
// a signature, any other as an attestation), and message signatures over the
// manifest's digest. sigstore-go proves signature, log inclusion (Rekor v1 and
// v2), timestamps (RFC 3161), certificate chain and certificate timestamps in
// one go; identity, extensions, annotations, subject and validity are decided
// here, all on that same signature.
//
// What sigstore-go refuses is looked at again, step by step, only to say why.
package bundle
