package certificate

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"time"
)

// newAuthority makes an authority that is valid from now on.
func newAuthority(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	template := &x509.Certificate{
		// The date distinguishes the authorities of a bundle.
		Subject:  pkix.Name{CommonName: "quaymaster webhook authority " + now.UTC().Format(time.RFC3339)},
		NotAfter: now.Add(AuthorityLife), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return issue(template, nil, nil, now)
}

// newLeaf makes a certificate for the names. It expires no later than its authority.
func newLeaf(names []string, by *x509.Certificate, with crypto.Signer, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	template := &x509.Certificate{
		Subject:  pkix.Name{CommonName: "quaymaster"},
		NotAfter: now.Add(LeafLife), BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if template.NotAfter.After(by.NotAfter) {
		template.NotAfter = by.NotAfter
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, name)
	}
	return issue(template, by, with, now)
}

// issue signs a template for a new key. Without by, the certificate is self-signed.
func issue(template, by *x509.Certificate, with crypto.Signer, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make a key: %w", err)
	}
	template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("make a serial number: %w", err)
	}
	template.NotBefore = now.Add(-skew)
	if by == nil {
		by, with = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), with)
	if err != nil {
		return nil, nil, fmt.Errorf("sign a certificate: %w", err)
	}
	c, err := x509.ParseCertificate(der)
	return c, key, err
}

// due reports whether two thirds of a certificate's lifetime have passed.
func due(c *x509.Certificate, now time.Time) bool {
	return now.After(c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) * 2 / 3))
}

// names returns the names and addresses of a certificate, sorted.
func names(c *x509.Certificate) []string {
	all := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		all = append(all, ip.String())
	}
	slices.Sort(all)
	return all
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

func parseKey(text []byte) (*ecdsa.PrivateKey, error) {
	if len(text) > maxEntry {
		return nil, fmt.Errorf("is larger than %d bytes", maxEntry)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "PRIVATE KEY" {
		return nil, errors.New("is not a PKCS #8 key in PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	own, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, errors.New("is not an ECDSA key")
	}
	return own, nil
}
