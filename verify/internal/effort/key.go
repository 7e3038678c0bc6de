package effort

import (
	"bytes"
	"crypto"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
)

const (
	// MaxRSA is the greatest length of an RSA modulus in bits, as crypto/tls has it
	// (CVE-2023-29409). Such a key takes 1 ms a signature, as one on P-521 does.
	MaxRSA = 8192
	// maxExponent is the greatest public exponent of a key of more than longRSA bits; Go's
	// greatest takes three times as long. OpenSSL, too, bounds it for long keys alone
	// (OPENSSL_RSA_MAX_PUBEXP_BITS), and whoever makes such keys takes 65537.
	maxExponent = 1<<16 + 1
	longRSA     = 4096
	// MaxCertificates is how many certificates one timestamp may bring.
	MaxCertificates = 10
	// MaxTimestamps is how many timestamps one signature may bring: one is usual, and
	// each of them is proved, and again to say what is wrong.
	MaxTimestamps = 4
	// maxSearch is how many signatures a search for a chain may prove among the
	// certificates of a timestamp: fewer than there are certificates, where each is of one
	// issuer, and 14 where a root and three others that certify it travel along.
	maxSearch = 16

	// leastRefused is fewer bytes than a key has that is refused.
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

// Certificate refuses a certificate, in DER, of such a key.
func Certificate(der []byte) error {
	if len(der) < leastRefused {
		return nil
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil //nolint:nilerr // whoever reads it next says so
	}
	return Key(certificate.PublicKey)
}

// Signers refuses what a timestamp brings: more certificates than MaxCertificates, ones
// that have issued one another to and fro, one of too long a key, or more than the one
// signer that RFC 3161, 2.4.2, allows.
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

// search counts the signatures that a search for a chain may prove, little beyond
// maxSearch: crypto/x509 tries each certificate of the issuer's name and goes on from
// there, until it has tried a hundred.
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
