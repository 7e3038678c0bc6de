package effort

import (
	"bytes"
	"crypto/x509"
	"slices"
)

// Certified returns those of the carried certificates that the trusted ones certify, or
// that those do. It begins at the trusted ones, so that nobody computes by a key before
// somebody vouches for it; a search for a chain begins at the other end, where strangers
// make it as wide as they like.
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
