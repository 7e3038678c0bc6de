package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Source is the serving certificate and the authorities that clients verify it with. It is safe for
// concurrent use. NewOwn and NewFiles make one.
type Source struct {
	now func() time.Time

	mu      sync.RWMutex
	held    *held // nil until a valid certificate was loaded
	trouble error // error of the last refresh
	changed chan struct{}
}

// held is the state that is replaced atomically.
type held struct {
	certificate *tls.Certificate
	bundle      []byte
	// authorityEnds is the expiry of the authority that clients verify the certificate with.
	authorityEnds time.Time
}

func newSource(now func() time.Time) *Source {
	if now == nil {
		now = time.Now
	}
	return &Source{now: now, changed: make(chan struct{})}
}

var errNothing = errors.New("no certificate was loaded yet")

// GetCertificate implements the function of tls.Config. It fails until a certificate is loaded.
func (s *Source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.held == nil {
		return nil, errNothing
	}
	return s.held.certificate, nil
}

// Bundle returns the authorities in PEM, for webhook configurations and for clients. It is nil
// until a certificate is loaded, and if Files has no CA.
func (s *Source) Bundle() []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.held == nil {
		return nil
	}
	return bytes.Clone(s.held.bundle)
}

// Expires returns the expiry of the serving certificate; zero until one is loaded.
func (s *Source) Expires() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.held == nil {
		return time.Time{}
	}
	return s.held.certificate.Leaf.NotAfter
}

// AuthorityExpires returns the expiry of the authority that clients verify the serving certificate
// with; of several, the latest. It is zero until a certificate is loaded, and if the bundle has no
// authority for it.
func (s *Source) AuthorityExpires() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.held == nil {
		return time.Time{}
	}
	return s.held.authorityEnds
}

// Changed returns a channel that is closed at the next change of the certificate or the bundle.
// Call it before reading either, so that no change is missed.
func (s *Source) Changed() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.changed
}

// Ready returns an error if no certificate can be served: none was loaded, or the loaded one has
// expired. Errors with a newer certificate do not matter while the old one is valid.
func (s *Source) Ready() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.held == nil && s.trouble != nil:
		return fmt.Errorf("%w: %w", errNothing, s.trouble)
	case s.held == nil:
		return errNothing
	}
	end := s.held.certificate.Leaf.NotAfter
	switch {
	case !s.now().After(end):
		return nil
	case s.trouble != nil:
		return fmt.Errorf("the certificate expired at %s: %w", end.UTC().Format(time.RFC3339), s.trouble)
	}
	return fmt.Errorf("the certificate expired at %s", end.UTC().Format(time.RFC3339))
}

// swap replaces the state and reports whether it differs.
func (s *Source) swap(next held) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.trouble = nil
	if s.held != nil && bytes.Equal(s.held.bundle, next.bundle) && sameChain(s.held.certificate, next.certificate) {
		return false
	}
	next.authorityEnds = authorityEnds(next.certificate, next.bundle)
	s.held = &next
	close(s.changed)
	s.changed = make(chan struct{})
	return true
}

// authorityEnds returns the latest expiry of the chains from a leaf to the bundle, without the leaf
// itself.
func authorityEnds(leaf *tls.Certificate, bundle []byte) time.Time {
	options := x509.VerifyOptions{
		Roots: x509.NewCertPool(), Intermediates: x509.NewCertPool(),
		CurrentTime: leaf.Leaf.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny},
	}
	options.Roots.AppendCertsFromPEM(bundle)
	for _, each := range leaf.Certificate[1:] {
		if c, err := x509.ParseCertificate(each); err == nil {
			options.Intermediates.AddCert(c)
		}
	}
	chains, err := leaf.Leaf.Verify(options)
	if err != nil {
		return time.Time{} // the bundle does not verify it
	}
	var last time.Time
	for _, chain := range chains {
		var first time.Time
		for _, c := range chain[1:] {
			if first.IsZero() || c.NotAfter.Before(first) {
				first = c.NotAfter
			}
		}
		if first.After(last) {
			last = first
		}
	}
	return last
}

func sameChain(a, b *tls.Certificate) bool {
	return bytes.Equal(bytes.Join(a.Certificate, nil), bytes.Join(b.Certificate, nil))
}

// keep leaves the state unchanged and records the error. It reports whether the error is new.
func (s *Source) keep(err error) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.trouble == nil || s.trouble.Error() != err.Error()
	s.trouble = err
	return news
}
