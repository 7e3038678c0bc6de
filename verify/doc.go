// Package verify defines the model of signature verification: claims, authorities, facts and
// rejections. It contains no cryptography.
//
// An Authority is a signer that a policy trusts, with the terms of that trust. A Fact is one
// verified claim for one authority, from one signature that met all terms. A Rejection is the
// reason why evidence was not accepted. The packages cosign, bundle and notation verify evidence
// of one format each; verify/trust supplies the keys and roots.
//
// A Verifier has three distinct results: a Fact (verified), a *Rejection (this evidence does not
// verify for this authority), or any other error (could not be verified).
package verify
