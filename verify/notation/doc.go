// Package notation answers: does this Notary Project signature prove that
// somebody whom the policy believes signed this image, or this document about
// it?
//
// It follows the Notary Project's signature specification 1.1 (JWS and COSE
// envelopes over a descriptor), its trust store and trust policy specification
// 1.1 (trust stores ca, signingAuthority and tsa, trusted identities, levels),
// RFC 3161 (timestamps), RFC 6960 (OCSP) and RFC 5280 (CRLs), by
// notaryproject/notation-go. Trust comes from the authority alone: no folder,
// no environment and no plugin of the machine takes part.
package notation
