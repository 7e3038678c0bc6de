// Package certificate answers: by which certificate is the gateway known to the
// API server?
//
// A Source holds the certificate that is served and the authorities by which
// callers know it, and swaps both as one. Two things fill it. Own is an authority
// of the gateway's own, kept with its leaf in a Store that all replicas share (in
// a cluster a Secret): made by whoever comes first, renewed ahead of time, and
// changed so that at each moment callers trust what every replica serves. Files
// follows a certificate that somebody else, such as cert-manager, writes.
//
// Until something good is loaded every handshake is refused: a certificate that
// nobody trusts would look like an answer. Certificates are X.509 (RFC 5280) with
// ECDSA P-256, entries are PEM, named as in Secrets of type kubernetes.io/tls.
package certificate
