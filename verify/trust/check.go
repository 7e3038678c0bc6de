package trust

import (
	"crypto"
	"crypto/dsa" //nolint:staticcheck // for error messages
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"fmt"
)

// The checks of this file refuse keys and certificates without any use when a policy is loaded.
// They are the same as those of Snapshot.Material, so that a loaded policy does not fail later.

// CheckKeys checks PEM public keys: of signers, with a digest algorithm, or of logs, without one.
func CheckKeys(text []byte, hash string) error {
	blocks, err := splitPEM(text)
	if err != nil {
		return err
	}
	for i, block := range blocks {
		if _, err := ParsePublicKey(block, hash); err != nil {
			return ofBlock(i, len(blocks), err)
		}
	}
	return nil
}

// CheckCertificate checks a signer's PEM certificate.
func CheckCertificate(text []byte) error {
	_, err := parseLeaf(text)
	return err
}

// CheckChain checks the PEM chain of signers' certificates.
func CheckChain(text []byte) error {
	certificates, err := ParseCertificates(text, MaxCertificates)
	if err != nil {
		return err
	}
	return checkIssuers(certificates)
}

// CheckTimestampChain checks the PEM chain of a timestamp authority.
func CheckTimestampChain(text []byte) error {
	if _, err := composeTimestampAuthority(text); err != nil {
		return err
	}
	return CheckChain(text)
}

// CheckTrustedRoot checks a trusted_root.json.
func CheckTrustedRoot(text []byte) error {
	_, err := parseRoot("trusted_root.json", text)
	return err
}

// checkIssuers refuses keys that verify no certificate. Short keys of authorities are left to
// crypto/x509, which accepts them.
func checkIssuers(certificates []*x509.Certificate) error {
	for i, c := range certificates {
		switch c.PublicKey.(type) {
		case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
		default:
			return ofBlock(i, len(certificates), fmt.Errorf("the certificate has a key %s; use ECDSA, RSA or Ed25519", kindOf(c.PublicKey)))
		}
	}
	return nil
}

// parseLeaf parses a signer's certificate.
func parseLeaf(text []byte) (*x509.Certificate, error) {
	leaf, err := ParseCertificates(text, MaxChain)
	switch {
	case err != nil:
		return nil, err
	case len(leaf) > 1:
		return nil, fmt.Errorf("want one certificate, found %d; give the others as its chain", len(leaf))
	}
	return leaf[0], checkStrength(leaf[0].PublicKey)
}

func ofBlock(i, count int, err error) error {
	if count == 1 {
		return err
	}
	return fmt.Errorf("PEM block %d of %d: %w", i+1, count, err)
}

// kindOf names the kind of an unsupported key.
func kindOf(key crypto.PublicKey) string {
	switch key.(type) {
	case *dsa.PublicKey:
		return "for DSA"
	case *ecdh.PublicKey:
		return "for X25519, which signs nothing"
	default:
		return "of an unknown kind"
	}
}
