// Package verifytest provides a complete signing infrastructure in memory, for tests and
// demonstrations.
//
// [New] makes a temporary Sigstore: a certificate authority with Fulcio's extensions and an
// embedded signed certificate timestamp in its leaf certificates, a Rekor v1 log, a Rekor v2 log
// and an RFC 3161 timestamp authority. A [Claim] describes the content, the signer and the
// evidence of a signature; [Sigstore.Bundle], [Sigstore.Layer] and [Sigstore.Envelope] write it
// in the formats of container registries. [NewNotary] does the same for notation signatures.
//
// The results are real: sigstore-go's verifier, cosign's and notation-go's accept them. The one
// exception is Rekor v2's deprecated entry type dsse, which sigstore-go no longer supports. To
// make an invalid signature, a field selects the one fault, for example [Record.Fault] or
// [Identity.NoSCT]. A second Sigstore serves as the foreign authority, log or timestamp
// authority.
//
// The package uses no network, no files and no global state. Its results must not be trusted:
// keys are in memory and every caller can read them.
//
// Formats: Sigstore bundle 0.1 to 0.3 and trusted root 0.1 (protobuf-specs 0.5), cosign's
// SIGNATURE_SPEC, DSSE 1.0, in-toto Statement v0.1 and v1, Rekor v1 entry types hashedrekord
// 0.0.1, dsse 0.0.1, intoto 0.0.2 and Rekor v2 types hashedrekord 0.0.2, dsse 0.0.2, C2SP
// tlog-checkpoint, RFC 6962, RFC 3161, RFC 6960, Notary Project signature specification 1.1.
package verifytest
