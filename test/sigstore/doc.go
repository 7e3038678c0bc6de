// Package sigstore answers: does the product believe what Sigstore's own
// servers write, and nothing else of theirs?
//
// The real fulcio and timestamp-server run on loopback. An OpenID Connect issuer
// and a certificate transparency log (RFC 6962) of our own, both with real keys,
// stand on either side of fulcio. What is signed travels as a Sigstore bundle
// v0.3 and is judged by the real program. There is no Rekor here: the time of
// signing is a timestamp's (RFC 3161), as in Sigstore deployments without a log.
package sigstore
