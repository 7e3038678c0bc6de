// Package verifytest answers one question for tests and demonstrations: who
// would have signed this, if a whole signing infrastructure were at hand?
//
// [New] makes a throw-away Sigstore in memory: a certificate authority whose
// leaf certificates carry Fulcio's extensions and an embedded signed
// certificate timestamp, a Rekor v1 log, a Rekor v2 log and an RFC 3161
// timestamp authority. A [Claim] says what is signed, by whom, and what is to
// travel with the signature; [Sigstore.Bundle], [Sigstore.Layer] and
// [Sigstore.Envelope] write it in the formats that are found beside images.
// [NewNotary] does the same for notation signatures.
//
// Everything is real: what is written is accepted by sigstore-go's verifier,
// by cosign's and by notation-go's; the one exception is Rekor v2's deprecated
// entry type dsse, which sigstore-go no longer takes. What shall be refused is asked for by a
// field that names the one thing that is wrong, for example
// [Record.Fault] or [Identity.NoSCT]; a second Sigstore serves as the foreign
// authority, log or timestamp authority.
//
// The package uses no network, no files and no global state. Nothing made here
// is worth trusting: keys live in memory and are given to whoever asks.
//
// Formats: Sigstore bundle 0.1 to 0.3 and trusted root 0.1 (protobuf-specs
// 0.5), cosign's SIGNATURE_SPEC, DSSE 1.0, in-toto Statement v0.1 and v1, Rekor
// v1 entry types hashedrekord 0.0.1, dsse 0.0.1, intoto 0.0.2 and Rekor v2
// types hashedrekord 0.0.2, dsse 0.0.2, C2SP tlog-checkpoint, RFC 6962, RFC
// 3161, RFC 6960, Notary Project signature specification 1.1.
package verifytest
