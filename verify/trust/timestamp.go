package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/quaymaster/quaymaster/verify/internal/limits"
)

// stampAuthority verifies timestamps only with certificates that the authority has certified. The
// library would use all certificates in a timestamp, and no signature covers them.
type stampAuthority struct {
	trusted root.SigstoreTimestampingAuthority
}

var _ root.TimestampingAuthority = (*stampAuthority)(nil)

// guarded wraps authorities, so that they check the certificates in a timestamp.
func guarded(authorities []root.TimestampingAuthority) []root.TimestampingAuthority {
	all := make([]root.TimestampingAuthority, 0, len(authorities))
	for _, authority := range authorities {
		if known, is := authority.(*root.SigstoreTimestampingAuthority); is {
			authority = &stampAuthority{trusted: *known}
		}
		all = append(all, authority)
	}
	return all
}

// Verify implements root.TimestampingAuthority.
func (a *stampAuthority) Verify(stamp, signature []byte) (*root.Timestamp, error) {
	token, err := limits.Token(stamp)
	switch {
	case err != nil:
		return nil, err
	case token == nil || len(token.Certificates) == 0 || a.trusted.Root == nil:
		return a.trusted.Verify(stamp, signature)
	}
	issuers := limits.Certified(token.Certificates, append([]*x509.Certificate{a.trusted.Root}, a.trusted.Intermediates...))
	signer := token.GetOnlySigner()
	switch {
	case signer == nil:
		return nil, errors.New("the timestamp does not bring the certificate of its signer")
	case a.trusted.Leaf != nil && !a.trusted.Leaf.Equal(signer):
		return nil, errors.New("the timestamp is signed by another certificate than the authority's")
	case !slices.ContainsFunc(issuers, signer.Equal):
		return nil, fmt.Errorf("the timestamp's certificate of %s is not certified by the authority", signer.Issuer)
	}
	// The chain is verified below, so the library gets the signer alone.
	alone := a.trusted
	alone.Root, alone.Intermediates, alone.Leaf = signer, nil, signer
	proved, err := alone.Verify(stamp, signature)
	if err != nil {
		return nil, err
	}
	if err := a.certifies(signer, issuers, proved); err != nil {
		return nil, err
	}
	return proved, nil
}

// certifies verifies the signer's chain at the time in the timestamp.
func (a *stampAuthority) certifies(signer *x509.Certificate, issuers []*x509.Certificate, at *root.Timestamp) error {
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageTimeStamping}, CurrentTime: at.Time,
	}
	options.Roots.AddCert(a.trusted.Root)
	for _, c := range slices.Concat(a.trusted.Intermediates, issuers) {
		options.Intermediates.AddCert(c)
	}
	if _, err := signer.Verify(options); err != nil {
		return fmt.Errorf("the chain of the timestamp's signer: %w", err)
	}
	return nil
}
