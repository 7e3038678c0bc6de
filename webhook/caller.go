package webhook

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Callers are the clients that may use an endpoint. They present a client certificate that one of
// the authorities signed.
type Callers struct {
	authorities []*x509.Certificate
	names       []string
}

// NewCallers makes Callers from authorities in PEM. With names, the certificate's common name must
// be among them; without names, every certificate of the authorities is accepted. Authorities that
// also sign other certificates, such as a cluster's own, require names.
func NewCallers(authorities []byte, names ...string) (*Callers, error) {
	c := &Callers{names: slices.Clone(names)}
	if slices.Contains(names, "") {
		return nil, errors.New("callers: a common name is empty")
	}
	for rest := authorities; ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			if len(bytes.TrimSpace(rest)) > 0 {
				return nil, errors.New("callers: the authorities contain data that is not PEM")
			}
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("callers: PEM blocks must be CERTIFICATE, found %q", block.Type)
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("callers: certificate %d of the authorities: %w", len(c.authorities)+1, err)
		}
		if !authority.IsCA {
			return nil, fmt.Errorf("callers: certificate %d (%s) is not a CA certificate", len(c.authorities)+1, authority.Subject)
		}
		c.authorities = append(c.authorities, authority)
	}
	if len(c.authorities) == 0 {
		return nil, errors.New("callers: no CA certificate found: every client would be rejected")
	}
	return c, nil
}

// poolOf returns the authorities of all endpoints, or nil if no endpoint requires a certificate.
func poolOf(endpoints map[string]Endpoint) *x509.CertPool {
	var pool *x509.CertPool
	for _, endpoint := range endpoints {
		if endpoint.Callers == nil {
			continue
		}
		if pool == nil {
			pool = x509.NewCertPool()
		}
		for _, authority := range endpoint.Callers.authorities {
			pool.AddCert(authority)
		}
	}
	return pool
}

// admit returns the reason to reject a client, or nil. The handshake verified the chains against
// the authorities of all endpoints; admit checks that one of them belongs to this endpoint. The
// expiry is checked again because a connection can outlive its certificate.
func (c *Callers) admit(connection *tls.ConnectionState, now time.Time) error {
	if c == nil {
		return nil
	}
	if connection == nil || len(connection.VerifiedChains) == 0 {
		return errors.New("this endpoint requires a client certificate")
	}
	leaf := connection.VerifiedChains[0][0]
	if now.After(leaf.NotAfter) {
		return fmt.Errorf("the client certificate expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if !slices.ContainsFunc(connection.VerifiedChains, c.signed) {
		return errors.New("the client certificate is not signed by an authority of this endpoint")
	}
	if len(c.names) > 0 && !slices.Contains(c.names, leaf.Subject.CommonName) {
		return fmt.Errorf("the client certificate's common name %q is not allowed", leaf.Subject.CommonName)
	}
	return nil
}

// signed reports whether a verified chain ends in an authority of the endpoint.
func (c *Callers) signed(chain []*x509.Certificate) bool {
	return slices.ContainsFunc(c.authorities, chain[len(chain)-1].Equal)
}
