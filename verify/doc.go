// Package verify answers: which claims are proved, and by whom?
//
// It holds the words of proof and no cryptography: an Authority is somebody
// whom a policy would believe and on what terms; a Fact is one claim proved for
// one authority, by one signature that met all of its terms; a Rejection says
// why a piece of evidence proved nothing. The packages below it (cosign,
// bundle, notation) turn evidence into facts, one format each; verify/trust
// holds what they trust.
//
// A Verifier answers in three ways, which are never mixed: a Fact (proved), a
// *Rejection (disproved: this evidence is no proof for this authority), or any
// other error (could not look).
package verify
