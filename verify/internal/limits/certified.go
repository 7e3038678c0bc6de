package limits

import (
	"bytes"
	"crypto/x509"
	"slices"
)

// Certified returns the carried certificates that the trusted ones certify, directly or through
// other carried ones. It starts at the trusted certificates, so that it uses only keys that are
// already certified. A search from the other end can be made arbitrarily wide by an attacker.
func Certified(carried, trusted []*x509.Certificate) []*x509.Certificate {
	parents, carried := slices.Clone(trusted), slices.Clone(carried)
	for i := 0; i < len(parents); i++ {
		parent := parents[i]
		carried = slices.DeleteFunc(carried, func(c *x509.Certificate) bool {
			if !bytes.Equal(c.RawIssuer, parent.RawSubject) || c.CheckSignatureFrom(parent) != nil {
				return false
			}
			parents = append(parents, c)
			return true
		})
	}
	return parents[len(trusted):]
}
