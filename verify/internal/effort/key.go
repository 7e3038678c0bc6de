package effort

import (
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
)

const (
	// MaxRSA is the greatest length of an RSA modulus in bits, as crypto/tls has it
	// (CVE-2023-29409). Such a key takes up to 6 ms a signature.
	MaxRSA = 8192
	// MaxCertificates is how many certificates one timestamp may bring: building
	// chains tries each of them.
	MaxCertificates = 10

	// leastTooLong is fewer bytes than a key beyond MaxRSA has.
	leastTooLong = MaxRSA / 8
)

// Key refuses an RSA key beyond MaxRSA.
func Key(key crypto.PublicKey) error {
	if k, ok := key.(*rsa.PublicKey); ok && k.N.BitLen() > MaxRSA {
		return fmt.Errorf("the RSA key of %d bits is longer than the bound of %d", k.N.BitLen(), MaxRSA)
	}
	return nil
}

// Certificate refuses a certificate, in DER, of such a key.
func Certificate(der []byte) error {
	if len(der) < leastTooLong {
		return nil
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil //nolint:nilerr // whoever reads it next says so
	}
	return Key(certificate.PublicKey)
}

// Signers refuses what a timestamp brings: more certificates than MaxCertificates, one
// of too long a key, or more than the one signer that RFC 3161, 2.4.2, allows.
func Signers(certificates []*x509.Certificate, signers int) error {
	switch {
	case signers > 1:
		return fmt.Errorf("the timestamp has %d signers, and RFC 3161 allows one", signers)
	case len(certificates) > MaxCertificates:
		return fmt.Errorf("the timestamp brings %d certificates, more than the bound of %d", len(certificates), MaxCertificates)
	}
	for _, c := range certificates {
		if err := Key(c.PublicKey); err != nil {
			return fmt.Errorf("the timestamp: %w", err)
		}
	}
	return nil
}
