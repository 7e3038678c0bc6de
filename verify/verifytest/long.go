package verifytest

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// LongKey is an RSA key of any length. Its modulus is invented, so there is no private key, and
// generating it takes no time.
func LongKey(bits int) *rsa.PublicKey {
	modulus := new(big.Int).SetBit(big.NewInt(1), bits-1, 1)
	return &rsa.PublicKey{N: modulus, E: 1<<16 + 1}
}

// CertificateOf is a certificate authority's certificate for any key, by an unknown issuer.
func CertificateOf(key crypto.PublicKey) (*x509.Certificate, error) {
	signer, err := newKey(ECDSAP256)
	if err != nil {
		return nil, fmt.Errorf("certify a key: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "any key"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	by := *template
	by.Subject.CommonName = "nobody"
	return (&issuer{certificate: &by, key: signer}).issue(template, key)
}
