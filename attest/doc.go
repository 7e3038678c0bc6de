// Package attest finds and parses evidence: signatures and attestations of a digest. It verifies
// none of it; that is the task of package verify.
//
// The locations follow cosign's signature specification (tags sha256-<hex>.sig and .att, OCI 1.1
// referrers), the Sigstore bundle specification v0.3 (referrers), the Notary Project signature
// specification v1 (referrers) and the OCI Distribution Specification 1.1 (referrers API, and the
// referrers tag where a registry lacks it). Statements are in-toto Statement v0.1 and v1 in DSSE
// v1 envelopes.
package attest
