// Package cosign verifies signatures and attestations in cosign's format of layers and
// annotations.
//
// It reads the formats of cosign's signature specification (SIGNATURE_SPEC.md of cosign v2):
// simple signing payloads, DSSE envelopes with in-toto statements (v0.1 and v1), and raw DSSE
// referrers, which are envelopes without annotations. The certificate, chain, log entry and
// timestamp of a signature are annotations of its layer.
//
// cosign's library verifies one signature at a time, offline, and always against the claim. This
// package adds the checks that cosign omits, on the same signature: identities over all names of
// the certificate and with anchors, every extension, the chain at the time of signing and not
// only at the leaf's start, and the validity period of the authority. After cosign refuses a
// signature, the checks are repeated only to report the reason.
package cosign
