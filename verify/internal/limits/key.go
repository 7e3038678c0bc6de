package limits

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
)

const (
	// MaxRSA is the greatest length of an RSA modulus in bits, as in crypto/tls (CVE-2023-29409).
	// Such a key takes 1 ms per signature, as does one on P-521.
	MaxRSA = 8192
	// maxExponent is the greatest public exponent of a key of more than longRSA bits; Go's
	// greatest takes three times as long. OpenSSL, too, bounds it for long keys alone
	// (OPENSSL_RSA_MAX_PUBEXP_BITS), and such keys usually have the exponent 65537.
	maxExponent = 1<<16 + 1
	longRSA     = 4096
	// MaxCertificates bounds the certificates in one timestamp.
	MaxCertificates = 10
	// MaxTimestamps bounds the timestamps of one signature. One is usual. Each is verified once,
	// and again to find the reason of a failure.
	MaxTimestamps = 4
	// maxSearch bounds the signature checks of a chain search among a timestamp's certificates.
	// With one issuer per certificate, there are fewer checks than certificates. A root and three
	// certificates that cross-certify it need 14.
	maxSearch = 16

	// leastRefused is less than the size in bytes of any refused key.
	leastRefused = longRSA / 8
)

// Key refuses an RSA key beyond MaxRSA, and a long one beyond maxExponent.
func Key(key crypto.PublicKey) error {
	k, ok := key.(*rsa.PublicKey)
	switch {
	case !ok:
		return nil
	case k.N.BitLen() > MaxRSA:
		return fmt.Errorf("the RSA key of %d bits is longer than the bound of %d", k.N.BitLen(), MaxRSA)
	case k.N.BitLen() > longRSA && k.E > maxExponent:
		return fmt.Errorf("the RSA key of %d bits has the exponent %d, more than the bound of %d", k.N.BitLen(), k.E, maxExponent)
	}
	return nil
}

// Certificate refuses a DER certificate with such a key.
func Certificate(der []byte) error {
	if len(der) < leastRefused {
		return nil
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil //nolint:nilerr // the next parser reports the error
	}
	return Key(certificate.PublicKey)
}

// Signers refuses timestamps with too many certificates or keys that are too long. It also
// refuses cycles of certificates that have issued one another, and more than the one signer that
// RFC 3161, 2.4.2, allows.
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
		if search(c, certificates) > maxSearch {
			return fmt.Errorf("the timestamp brings certificates that have issued one another: a search for a chain would prove more than %d signatures", maxSearch)
		}
	}
	return nil
}

// search counts the signature checks of a chain search, up to little more than maxSearch:
// crypto/x509 tries each certificate with the issuer's name and continues from there, until it
// has tried a hundred.
func search(from *x509.Certificate, among []*x509.Certificate) int {
	others := make([]*x509.Certificate, 0, len(among))
	for _, c := range among {
		if !c.Equal(from) {
			others = append(others, c)
		}
	}
	proofs := 0
	for _, c := range others {
		if bytes.Equal(c.RawSubject, from.RawIssuer) && proofs <= maxSearch {
			proofs += 1 + search(c, others)
		}
	}
	return proofs
}
