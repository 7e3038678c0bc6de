package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	"github.com/quaymaster/quaymaster/verify/internal/limits"
)

// ParseCertificates parses PEM certificates, at most most of them. It refuses anything else in
// the text, and RSA keys of more than 8192 bits.
func ParseCertificates(text []byte, most int) ([]*x509.Certificate, error) {
	if len(text) > MaxPEM {
		return nil, fmt.Errorf("certificates: %d bytes are more than the bound of %d", len(text), MaxPEM)
	}
	var certificates []*x509.Certificate
	rest := text
	for len(bytes.TrimSpace(rest)) > 0 {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			return nil, errors.New(`certificates: there is text that is no PEM block; want "-----BEGIN CERTIFICATE-----"`)
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("certificates: the PEM block is %q, want %q", block.Type, "CERTIFICATE")
		}
		if len(certificates) == most {
			return nil, fmt.Errorf("certificates: more than the bound of %d", most)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certificates)+1, err)
		}
		if err := limits.Key(certificate.PublicKey); err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(certificates)+1, err)
		}
		certificates = append(certificates, certificate)
	}
	if len(certificates) == 0 {
		return nil, errors.New("certificates: the text is empty")
	}
	return certificates, nil
}

// splitPEM splits a text of several PEM blocks into single ones.
func splitPEM(text []byte) ([][]byte, error) {
	if len(text) > MaxPEM {
		return nil, fmt.Errorf("PEM: %d bytes are more than the bound of %d", len(text), MaxPEM)
	}
	var blocks [][]byte
	rest := text
	for len(bytes.TrimSpace(rest)) > 0 {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil {
			return nil, errors.New(`PEM: there is text that is no PEM block; want "-----BEGIN PUBLIC KEY-----"`)
		}
		if len(blocks) == MaxCertificates {
			return nil, fmt.Errorf("PEM: more than the bound of %d blocks", MaxCertificates)
		}
		blocks = append(blocks, pem.EncodeToMemory(block))
	}
	if len(blocks) == 0 {
		return nil, errors.New("PEM: the text is empty")
	}
	return blocks, nil
}

// isSelfSigned reports whether a certificate names itself as its issuer and has its own
// signature.
func isSelfSigned(c *x509.Certificate) bool {
	return bytes.Equal(c.RawIssuer, c.RawSubject) && c.CheckSignatureFrom(c) == nil
}
