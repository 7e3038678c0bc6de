// Package sigstore answers: does the product accept the signatures of Sigstore's own
// servers, and nothing else of theirs?
//
// The real fulcio and timestamp-server run on loopback. An OpenID Connect issuer
// and a certificate transparency log (RFC 6962) of our own, both with real keys,
// stand on either side of fulcio. Signatures are stored as a Sigstore bundle
// v0.3 and judged by the real program. There is no Rekor here: the time of
// signing is a timestamp's (RFC 3161), as in Sigstore deployments without a log.
package sigstore
