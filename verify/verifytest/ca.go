package verifytest

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"
)

// CA is a certificate authority: a root and, usually, an intermediate.
type CA struct {
	root, intermediate *issuer             // nil if the root issues leaf certificates
	above              []*x509.Certificate // between intermediate and root, the nearest to the leaf first
	url                string
	from, to           time.Time
}

// issuer is a certificate that issues others.
type issuer struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// span is the validity of the authorities of one Sigstore.
type span struct{ from, to time.Time }

// newCA makes a root and, unless direct is set, an intermediate that is restricted to one use.
func newCA(name string, algorithm Algorithm, valid span, use x509.ExtKeyUsage, direct bool) (*CA, error) {
	root, err := newIssuer(name+" root", algorithm, valid, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make the root of %s: %w", name, err)
	}
	ca := &CA{root: root, from: valid.from, to: valid.to}
	if direct {
		return ca, nil
	}
	ca.intermediate, err = newIssuer(name+" intermediate", algorithm, valid, root, []x509.ExtKeyUsage{use})
	if err != nil {
		return nil, fmt.Errorf("make the intermediate of %s: %w", name, err)
	}
	return ca, nil
}

func newIssuer(name string, algorithm Algorithm, valid span, parent *issuer, use []x509.ExtKeyUsage) (*issuer, error) {
	key, err := newKey(algorithm)
	if err != nil {
		return nil, err
	}
	template := issuerTemplate(name, valid)
	template.ExtKeyUsage = use
	if parent == nil {
		parent = &issuer{certificate: template, key: key}
	} else {
		template.MaxPathLenZero = true
	}
	c, err := parent.issue(template, key.Public())
	if err != nil {
		return nil, err
	}
	return &issuer{certificate: c, key: key}, nil
}

// issuerTemplate is the template of an issuer's certificate.
func issuerTemplate(name string, valid span) *x509.Certificate {
	return &x509.Certificate{
		Subject:               pkix.Name{CommonName: name, Organization: []string{organization}},
		NotBefore:             valid.from,
		NotAfter:              valid.to,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
}

// issue signs a certificate; the serial number is random unless it is set.
func (i *issuer) issue(template *x509.Certificate, key crypto.PublicKey) (*x509.Certificate, error) {
	if template.SerialNumber == nil {
		n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
		if err != nil {
			return nil, fmt.Errorf("choose a serial number: %w", err)
		}
		template.SerialNumber = n
	}
	der, err := x509.CreateCertificate(rand.Reader, template, i.certificate, key, i.key)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read back an issued certificate: %w", err)
	}
	return c, nil
}

// issuing is the certificate that signs leaf certificates.
func (c *CA) issuing() *issuer {
	if c.intermediate != nil {
		return c.intermediate
	}
	return c.root
}

// chain holds the issuers of a leaf, the root last.
func (c *CA) chain() []*x509.Certificate {
	if c.intermediate == nil {
		return []*x509.Certificate{c.root.certificate}
	}
	chain := append([]*x509.Certificate{c.intermediate.certificate}, c.above...)
	return append(chain, c.root.certificate)
}

// URL is the authority's address in trusted roots; nothing listens there.
func (c *CA) URL() string { return c.url }

// RootPEM is the root certificate.
func (c *CA) RootPEM() []byte { return certificatesPEM(c.root.certificate) }

// IntermediatePEM is the intermediate certificate, nil if there is none.
func (c *CA) IntermediatePEM() []byte {
	if c.intermediate == nil {
		return nil
	}
	return certificatesPEM(c.intermediate.certificate)
}

// ChainPEM is the intermediates, if there are any, and the root.
func (c *CA) ChainPEM() []byte { return certificatesPEM(c.chain()...) }
