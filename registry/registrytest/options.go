package registrytest

import (
	"crypto/x509"
	"time"
)

// Options configures the registry. The zero value is an honest, anonymous OCI 1.1 registry
// over plain HTTP.
type Options struct {
	// TLS serves HTTPS under a throw-away certificate (Server.CertPEM).
	TLS bool
	// Names are further DNS names for the certificate, in addition to localhost and the
	// loopback addresses.
	Names []string
	// HTTP2 enables HTTP/2 for clients that negotiate it (TLS only).
	HTTP2 bool
	// ClientCAs, when set, has everybody present a certificate of theirs (TLS
	// only); see NewClientCertificate.
	ClientCAs *x509.CertPool
	// AskCertificate asks for client certificates of any origin, and does
	// without: a host that is curious (TLS only).
	AskCertificate bool
	// Address to listen on; the default is a free port of 127.0.0.1.
	Address string
	// Auth restricts access; the zero value permits everything.
	Auth Auth
	// PageSize is the most referrers or tags in one answer; 0 means all.
	PageSize int
	// NoReferrers leaves the referrers API out (404), so that clients keep the
	// referrers tag themselves.
	NoReferrers bool
	// NoFilter ignores the artifactType query, as a registry may.
	NoFilter bool
	// Delay passes before each answer.
	Delay time.Duration
	// PullLimit, when above 0, is how many manifest GETs are answered before
	// 429; every manifest answer then carries ratelimit-limit and
	// ratelimit-remaining, as Docker Hub's do.
	PullLimit int
	// Faults misbehave; see Fault.
	Faults []Fault
}

// Auth configures authentication.
type Auth struct {
	// Scheme is NoAuth, Basic or Token.
	Scheme Scheme
	// Username and Password are the only ones that are accepted.
	Username, Password string
	// IdentityToken is accepted as an OAuth2 refresh token; "" means none.
	IdentityToken string
	// AnonymousPull gives tokens to pull to everybody (Token only).
	AnonymousPull bool
	// Realm replaces the URL in the challenge; the default is this server's own
	// "/token". A realm on another host is how credentials are fished for.
	Realm string
	// Service is the service in the challenge; the default is the Host header.
	Service string
}

// Scheme is a way to authenticate.
type Scheme string

// The schemes.
const (
	NoAuth Scheme = ""
	Basic  Scheme = "basic"
	Token  Scheme = "token"
)
