// Package attest answers: what claims something about this image?
//
// It finds evidence (signatures and attestations of a digest) and takes it
// apart, and believes none of it: whether a claim is true is package verify's
// question. Where to look follows cosign's signature specification (tags
// sha256-<hex>.sig and .att, OCI 1.1 referrers), the Sigstore bundle
// specification v0.3 (referrers), the Notary Project signature specification
// v1 (referrers) and the OCI Distribution Specification 1.1 (referrers API,
// and the referrers tag where a registry lacks it). Statements are in-toto
// Statement v0.1 and v1 in DSSE v1 envelopes.
package attest
