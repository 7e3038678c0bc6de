// Package cosign answers: does this signature or attestation, in cosign's
// format of layers and annotations, prove a claim about an image, for this
// authority?
//
// It reads what cosign's signature specification (SIGNATURE_SPEC.md of cosign
// v2) calls simple signing payloads, DSSE envelopes with in-toto statements
// (v0.1 and v1), and raw DSSE referrers, which are envelopes without
// annotations. Everything that belongs to a signature (certificate, chain, log
// entry, timestamp) stands in the annotations of its layer.
//
// cosign's own library proves one signature at a time, offline, always against
// the claim. What it leaves out is decided here, on the same signature:
// identities over all names of the certificate and with anchors, every
// extension, the chain at the time of signing and not only at the leaf's start,
// validity of the authority in time. What cosign refuses is looked at again only
// to say why.
package cosign
