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

// Source is the certificate that is served and the authorities by which callers
// know it. It is safe for concurrent use. NewOwn and NewFiles make one.
type Source struct {
	now func() time.Time

	mu      sync.RWMutex
	held    *held // nil until something good was loaded
	trouble error // of the last look
	changed chan struct{}
}

// held is what is swapped as one.
type held struct {
	certificate *tls.Certificate
	bundle      []byte
	// authorityEnds is when the authority ends that callers know the certificate by.
	authorityEnds time.Time
}

func newSource(now func() time.Time) *Source {
	if now == nil {
		now = time.Now
	}
	return &Source{now: now, changed: make(chan struct{})}
}

var errNothing = errors.New("no certificate was loaded yet")

// GetCertificate is for tls.Config. It fails until something was loaded.
func (s *Source) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.held == nil {
		return nil, errNothing
	}
	return s.held.certificate, nil
}

// Bundle returns the authorities in PEM, for webhook configurations and for
// clients; nil until something was loaded, and where Files was given none.
func (s *Source) Bundle() []byte {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.held == nil {
		return nil
	}
	return bytes.Clone(s.held.bundle)
}

// Expires returns when the certificate that is served ends; zero until something
// was loaded.
func (s *Source) Expires() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.held == nil {
		return time.Time{}
	}
	return s.held.certificate.Leaf.NotAfter
}

// AuthorityExpires returns when the authority ends by which callers know the served
// certificate, of several the last one; zero until something was loaded, and where the
// bundle has none for it.
func (s *Source) AuthorityExpires() time.Time {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.held == nil {
		return time.Time{}
	}
	return s.held.authorityEnds
}

// Changed returns a channel that is closed at the next change of the certificate
// or the bundle. Ask for it before reading what it speaks of.
func (s *Source) Changed() <-chan struct{} {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.changed
}

// Ready says why no caller can be served: nothing was loaded, or what was has
// expired. Trouble with a newer certificate is none as long as the old one holds.
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

// swap serves something else from now on, and tells of it if it differs.
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

// authorityEnds returns when the last of the chains from a leaf to the bundle ends, the
// leaf apart.
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
		return time.Time{} // nobody knows it by the bundle
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

// keep goes on with what is held and remembers why. It reports whether that is
// news.
func (s *Source) keep(err error) (news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	news = s.trouble == nil || s.trouble.Error() != err.Error()
	s.trouble = err
	return news
}
