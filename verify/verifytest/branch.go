package verifytest

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// maxDepth bounds the intermediates of a branch: far more than verifiers accept.
const maxDepth = 64

// BranchOptions describe a branch of a certificate authority.
type BranchOptions struct {
	// Depth is the number of intermediates, one below another; one if zero.
	Depth int
	// NotBefore and NotAfter bound the validity of the issuing intermediate; the authority's own
	// if zero.
	NotBefore, NotAfter time.Time
	// SHA1 makes the issuers sign with SHA-1, which has been broken since 2017.
	SHA1 bool
}

// Branch makes other intermediates below the authority's root, of which the last issues
// certificates for [Identity.CA]. Verifiers accept them if they trust the root, and reject them
// if they trust only the authority's own intermediate.
func (c *CA) Branch(o BranchOptions) (*CA, error) {
	if o.Depth == 0 {
		o.Depth = 1
	}
	if o.Depth < 0 || o.Depth > maxDepth {
		return nil, fmt.Errorf("branch: a depth of %d is not between 1 and %d", o.Depth, maxDepth)
	}
	if !o.NotAfter.IsZero() && !o.NotAfter.After(o.NotBefore) {
		return nil, fmt.Errorf("branch: it ends (%s) before it begins (%s)", o.NotAfter, o.NotBefore)
	}
	branch := &CA{root: c.root, url: c.url, from: c.from, to: c.to}
	parent := c.root
	for level := range o.Depth {
		made, err := o.issuer(c, parent, level)
		if err != nil {
			return nil, fmt.Errorf("branch: %w", err)
		}
		if level > 0 {
			branch.above = append([]*x509.Certificate{parent.certificate}, branch.above...)
		}
		parent = made
	}
	branch.intermediate = parent
	return branch, nil
}

// issuer makes the intermediate of a level, the root's own children being level 0.
func (o BranchOptions) issuer(c *CA, parent *issuer, level int) (*issuer, error) {
	key, err := newKey(ECDSAP256)
	if err != nil {
		return nil, err
	}
	isLast := level == o.Depth-1
	template := issuerTemplate(fmt.Sprintf("%s branch %d", c.root.certificate.Subject.CommonName, level), span{c.from, c.to})
	template.ExtKeyUsage, template.MaxPathLenZero = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning}, isLast
	if isLast && !o.NotBefore.IsZero() {
		template.NotBefore = o.NotBefore.Truncate(time.Second).UTC()
	}
	if isLast && !o.NotAfter.IsZero() {
		template.NotAfter = o.NotAfter.Truncate(time.Second).UTC()
	}
	if o.SHA1 {
		template.SignatureAlgorithm = parent.sha1()
	}
	certificate, err := parent.issue(template, key.Public())
	return &issuer{certificate: certificate, key: key}, err
}

// Crossed returns the authority as cross-certified by another authority's root: the
// intermediate's name and key under another issuer. Verifiers accept its certificates if they
// trust that root, and reject them if they trust only a named intermediate of it.
func (c *CA) Crossed(by *CA) (*CA, error) {
	if c.intermediate == nil {
		return nil, errors.New("cross an authority: it has no intermediate")
	}
	own := c.intermediate.certificate
	template := issuerTemplate("", span{own.NotBefore, own.NotAfter})
	template.Subject, template.ExtKeyUsage, template.MaxPathLenZero = own.Subject, own.ExtKeyUsage, true
	certificate, err := by.root.issue(template, own.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("cross an authority: %w", err)
	}
	return &CA{root: by.root, intermediate: &issuer{certificate: certificate, key: c.intermediate.key}, url: by.url, from: by.from, to: by.to}, nil
}

// Issuing returns a signer's certificate as an authority. It is not one: the certificate does not
// permit issuing others.
func (s *Signer) Issuing() (*CA, error) {
	if s.leaf == nil || len(s.issuers) == 0 {
		return nil, errors.New("issue by a signer: it has no certificate of an authority")
	}
	last := len(s.issuers) - 1
	return &CA{
		root: &issuer{certificate: s.issuers[last]}, intermediate: &issuer{certificate: s.leaf, key: s.key}, above: s.issuers[:last],
		from: s.leaf.NotBefore, to: s.leaf.NotAfter,
	}, nil
}

// sha1 is the SHA-1 algorithm of the issuer's key; zero for a key without one.
func (i *issuer) sha1() x509.SignatureAlgorithm {
	switch i.key.Public().(type) {
	case *ecdsa.PublicKey:
		return x509.ECDSAWithSHA1
	case *rsa.PublicKey:
		return x509.SHA1WithRSA
	}
	return x509.UnknownSignatureAlgorithm
}
