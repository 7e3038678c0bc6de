// Package certificate provides the gateway's serving certificate and the CA bundle that the API
// server verifies it with.
//
// A Source holds both and replaces them atomically. There are two implementations. Own is the
// gateway's own authority, stored with its leaf in a Store that all replicas share (in a cluster a
// Secret). The first replica creates it. It is renewed ahead of time and rotated so that clients
// trust the certificate of every replica at each moment. Files follows a certificate that is
// written by another program, such as cert-manager.
//
// Handshakes fail until a valid certificate is loaded, because an untrusted certificate would hide
// that the gateway is not ready. Certificates are X.509 (RFC 5280) with ECDSA P-256. Entries are
// PEM and have the names of Secrets of type kubernetes.io/tls.
package certificate
