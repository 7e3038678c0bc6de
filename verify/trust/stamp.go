package trust

import (
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"github.com/sigstore/sigstore-go/pkg/root"

	"github.com/quaymaster/quaymaster/verify/internal/effort"
)

// stampAuthority proves timestamps with no certificate of theirs that the authority has
// not certified: its library takes all that a timestamp brings, and no signature covers
// them.
type stampAuthority struct {
	trusted root.SigstoreTimestampingAuthority
}

var _ root.TimestampingAuthority = (*stampAuthority)(nil)

// guarded has authorities look at the certificates that a timestamp brings.
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
	token, err := effort.Token(stamp)
	switch {
	case err != nil:
		return nil, err
	case token == nil || len(token.Certificates) == 0 || a.trusted.Root == nil:
		return a.trusted.Verify(stamp, signature)
	}
	issuers := effort.Certified(token.Certificates, append([]*x509.Certificate{a.trusted.Root}, a.trusted.Intermediates...))
	signer := token.GetOnlySigner()
	switch {
	case signer == nil:
		return nil, errors.New("the timestamp does not bring the certificate of its signer")
	case a.trusted.Leaf != nil && !a.trusted.Leaf.Equal(signer):
		return nil, errors.New("the timestamp is signed by another certificate than the authority's")
	case !slices.ContainsFunc(issuers, signer.Equal):
		return nil, fmt.Errorf("the timestamp's certificate of %s is not certified by the authority", signer.Issuer)
	}
	// The chain is proved below, so that the library is left with the signer.
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

// certifies proves the chain of a signer at the time that its timestamp states.
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
