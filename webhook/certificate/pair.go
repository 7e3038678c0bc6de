package certificate

import (
	"bytes"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// parseAuthorities reads a bundle, which must contain only CA certificates in PEM.
func parseAuthorities(text []byte) ([]*x509.Certificate, error) {
	if len(text) > maxEntry {
		return nil, fmt.Errorf("is larger than %d bytes", maxEntry)
	}
	var authorities []*x509.Certificate
	for rest := text; len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("contains data that is not a PEM certificate")
		}
		if len(authorities) == maxAuthorities {
			return nil, fmt.Errorf("holds more than %d certificates", maxAuthorities)
		}
		authority, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(authorities)+1, err)
		}
		if !authority.IsCA {
			return nil, fmt.Errorf("certificate %d (%s) is not a CA certificate", len(authorities)+1, authority.Subject)
		}
		if len(authority.UnhandledCriticalExtensions) > 0 { // no client verifies a certificate by it
			return nil, fmt.Errorf("certificate %d (%s) has an unknown critical extension", len(authorities)+1, authority.Subject)
		}
		authorities = append(authorities, authority)
	}
	if len(authorities) == 0 {
		return nil, errors.New("holds no certificate")
	}
	return authorities, nil
}

// parsePair reads a certificate with its chain and the matching key.
func parsePair(certificate, key []byte) (*tls.Certificate, error) {
	if len(certificate) > maxEntry || len(key) > maxEntry {
		return nil, fmt.Errorf("certificate or key is larger than %d bytes", maxEntry)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	if len(pair.Certificate) > maxChain {
		return nil, fmt.Errorf("the chain has more than %d certificates", maxChain)
	}
	if pair.Leaf == nil {
		pair.Leaf, err = x509.ParseCertificate(pair.Certificate[0])
	}
	return &pair, err
}

// checkLife returns an error if a certificate is expired or not valid yet.
func checkLife(c *x509.Certificate, now time.Time) error {
	switch {
	case now.After(c.NotAfter):
		return fmt.Errorf("it expired at %s", c.NotAfter.UTC().Format(time.RFC3339))
	case now.Add(skew).Before(c.NotBefore):
		return fmt.Errorf("it is not valid before %s", c.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// checkTrust verifies a certificate against the authorities alone, as a client does.
func checkTrust(pair *tls.Certificate, authorities []*x509.Certificate, now time.Time) error {
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(), CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	// Clocks differ: the certificate of another replica may begin in this replica's future.
	if pair.Leaf.NotBefore.After(now) {
		options.CurrentTime = pair.Leaf.NotBefore
	}
	for _, authority := range authorities {
		options.Roots.AddCert(authority)
	}
	for _, der := range pair.Certificate[1:] {
		intermediate, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("the chain: %w", err)
		}
		options.Intermediates.AddCert(intermediate)
	}
	_, err := pair.Leaf.Verify(options)
	return err
}

// checkNames returns an error for a name that a certificate lacks.
func checkNames(c *x509.Certificate, names []string) error {
	for _, name := range names {
		if err := c.VerifyHostname(name); err != nil {
			return err
		}
	}
	return nil
}

// belongs reports whether a key matches a certificate.
func belongs(key crypto.Signer, c *x509.Certificate) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(c.PublicKey)
}

func encodeCertificate(certificates ...*x509.Certificate) []byte {
	var text []byte
	for _, c := range certificates {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return text
}
