// Package notation verifies Notary Project signatures of images, and of documents about images,
// for an authority.
//
// It follows the Notary Project's signature specification 1.1 (JWS and COSE envelopes over a
// descriptor), its trust store and trust policy specification 1.1 (trust stores ca,
// signingAuthority and tsa, trusted identities, levels), RFC 3161 (timestamps), RFC 6960 (OCSP)
// and RFC 5280 (CRLs), by notaryproject/notation-go. Trust comes from the authority alone: the
// machine's folders, environment and plugins are not used.
package notation
