package verifytest

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
)

// Crowded returns the authority with additional certificates in the chains that it issues: one
// with its name and key by another issuer, and n of that issuer's own. These differ in an
// alternative name alone, so that each could have issued each of the others. A chain search to a
// root among them visits every path, with the slowest kind of key.
func (c *CA) Crowded(n int) (*CA, error) {
	crowd, err := c.many(n)
	if err != nil {
		return nil, err
	}
	crowded := *c
	crowded.above = slices.Concat(c.above, crowd)
	return &crowded, nil
}

// Crowded returns the authority with the additional certificates of [CA.Crowded] in its
// timestamps. No signature covers them.
func (t *TSA) Crowded(n int) (*TSA, error) {
	crowd, err := t.ca.many(n)
	if err != nil {
		return nil, err
	}
	crowded := *t
	crowded.beside = crowd
	return &crowded, nil
}

func (c *CA) many(n int) ([]*x509.Certificate, error) {
	if c.intermediate == nil {
		return nil, errors.New("crowd an authority: it has no intermediate")
	}
	key, err := newKey(ECDSAP521)
	if err != nil {
		return nil, fmt.Errorf("crowd an authority: %w", err)
	}
	valid := span{c.from, c.to}
	by := &issuer{certificate: issuerTemplate("crowd", valid), key: key}
	again := issuerTemplate("", valid)
	again.Subject = c.intermediate.certificate.Subject
	certificate, err := by.issue(again, c.intermediate.key.Public())
	crowd := []*x509.Certificate{certificate}
	for i := 0; i < n && err == nil; i++ {
		template := issuerTemplate("crowd", valid)
		template.DNSNames = []string{fmt.Sprintf("%d.crowd.example", i)}
		certificate, err = by.issue(template, key.Public())
		crowd = append(crowd, certificate)
	}
	if err != nil {
		return nil, fmt.Errorf("crowd an authority: %w", err)
	}
	return crowd, nil
}
